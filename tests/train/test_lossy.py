"""Ids made from text with a real tokenizer and template."""

import sys
from pathlib import Path

import msgspec
import pytest
from support.traces import call, episode, ints, trace

from rollout.errors import UsageError
from train.lossy import from_pretrained, tokenized
from train.samples import build_samples

TEMPLATE = """\
{% for m in messages %}<{{ m.role }}> {{ m.content }}
{%- for c in m.tool_calls or [] %} {{ c.function.arguments.at }}{% endfor %} <end> {% endfor -%}
{% if add_generation_prompt %}<assistant>{% endif %}"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a tokenizer of words and a chat template."""
    transformers = pytest.importorskip("transformers", reason="needs transformers: make verl-cpu")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = ["?", "<user>", "<assistant>", "<end>", "look", "there", "seen"]
    core = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="?"))
    core.pre_tokenizer = WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=core, unk_token="?")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.verl
def test_a_conversation_gets_ids_and_merges(model: Path) -> None:
    function = {"name": "look", "arguments": '{"at": "there"}'}
    asked = [{"role": "user", "content": "look"}]
    said = {
        "role": "assistant",
        "content": "look",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    done = {"role": "assistant", "content": "seen"}
    more = [*asked, said, {"role": "user", "content": "seen"}]
    calls = [
        call(
            [],
            [],
            request=msgspec.json.encode({"messages": history}),
            reply=msgspec.json.encode({"choices": [{"message": reply}]}),
        )
        for history, reply in ((asked, said), (more, done))
    ]
    render = from_pretrained(str(model))
    first = tokenized(calls[0], render)
    assert ints(first.prompt_ids) == [1, 4, 3, 2]
    assert ints(first.response_ids) == [4, 5, 3]
    [sample], report = build_samples(episode(), trace(*calls), tokenizer=render)
    assert sample.response_ids.tolist() == [4, 5, 3, 1, 6, 3, 2, 6, 3]
    assert not sample.exact
    assert report.trained == 5


@pytest.mark.verl
def test_a_folder_without_tokenizer_is_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers: make verl-cpu")
    with pytest.raises(UsageError, match=f"tokenizer {tmp_path}"):
        from_pretrained(str(tmp_path))


def test_without_transformers_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UsageError, match="pip install transformers"):
        from_pretrained(str(tmp_path))
