"""States and images of recorded calls."""

import msgspec
import pytest
from support.traces import call, episode

from rollout.pictures import data_url, digest_of, inlined, taken_out
from rollout.types import Call, Image, JsonObject, Trace
from train.lossy import tokenized
from train.messages import anchor, conversation, for_template, images
from train.samples import build_samples
from train.sft_rows import sft_rows


def asked(*messages: JsonObject, said: str = "ok") -> Call:
    reply = {"choices": [{"message": {"role": "assistant", "content": said}}]}
    return call(
        [],
        [],
        request=msgspec.json.encode({"messages": messages}),
        reply=msgspec.json.encode(reply),
    )


def called(call_id: str, arguments: str, **more: str) -> JsonObject:
    function = {"name": "f", "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        **more,
    }


def test_states_that_differ_in_ids_times_and_json_are_the_same_anchor() -> None:
    one = asked(
        {"role": "user", "content": "It is 2026-11-29 12:00, work in /tmp/a1"},
        called("call_1", '{"a": 1, "b": 2}', reasoning_content="hm"),
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        said="left",
    )
    other = asked(
        {
            "role": "user",
            "content": [{"type": "text", "text": "It is 2026-11-30 09:30, work in /tmp/b2"}],
        },
        called("call_2", '{"b":2,"a":1}', content=""),
        {"role": "tool", "tool_call_id": "call_2", "content": "done"},
        said="right",
    )
    assert anchor(one) == anchor(other)


def test_states_that_differ_in_what_happened_are_different_anchors() -> None:
    user = {"role": "user", "content": "Go"}
    assert len({anchor(asked(user)), anchor(asked(user, called("c", '{"a":1}')))}) == 2
    assert anchor(asked({"role": "user", "content": "Stop"})) != anchor(asked(user))


def test_a_reply_that_says_nothing_is_none() -> None:
    silent = Call(
        index=0,
        dialect="responses",
        kind="main",
        request=b'{"input":"hi"}',
        reply=b'{"output":[]}',
    )
    told = conversation(silent)
    assert told.asked == len(told.messages) == 1


def test_what_is_no_conversation_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="call 0"):
        conversation(call([], [], reply=b"{}"))


def test_images_are_found_in_every_dialect() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    block = {"role": "user", "content": [{"type": "image", "source": source}]}
    found = images(
        call([], [], dialect="messages", request=msgspec.json.encode({"messages": [block]}))
    )
    assert found == ["data:image/png;base64,AAAA"]
    part = {"type": "input_image", "image_url": "data:,x"}
    body = {"input": [{"role": "user", "content": [part]}]}
    assert images(call([], [], dialect="responses", request=msgspec.json.encode(body))) == [
        "data:,x"
    ]


def test_arguments_that_are_no_json_stay_text() -> None:
    [bad, good] = for_template([called("1", "{oops"), called("2", '{"a": 1}')])
    assert bad["tool_calls"][0]["function"]["arguments"] == "{oops"
    assert good["tool_calls"][0]["function"]["arguments"] == {"a": 1}


def render(
    messages: list[JsonObject], tools: list[JsonObject], *, add_generation_prompt: bool
) -> list[int]:
    """A template whose tokens are characters; a reply opens with an empty thought, as Qwen3's does."""
    texts = [f"<{message['role']}>{message['content']}" for message in messages]
    text = "".join(texts) + ("<assistant>[no thought]" if add_generation_prompt else "")
    return [ord(character) for character in text]


def test_made_up_ids_are_what_the_reply_adds_to_the_rendered_request() -> None:
    made = tokenized(asked({"role": "user", "content": "hi"}, said="hello"), render)
    prompt, response = (
        "".join(map(chr, memoryview(data).cast("i")))
        for data in (made.prompt_ids, made.response_ids)
    )
    assert (prompt, response) == ("<user>hi<assistant>", "hello")
    assert made.logprobs == b""


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_recorded_pictures_are_known_by_digest_and_can_be_had_again(dialect: str) -> None:
    picture = Image(data=b"\x89PNG")
    part: JsonObject = {"type": "image_url", "image_url": {"url": data_url(picture)}}
    if dialect == "messages":
        data = data_url(picture).partition(",")[2]
        source = {"type": "base64", "media_type": "image/png", "data": data}
        part = {"type": "image", "source": source}
    body = msgspec.json.encode({"messages": [{"role": "user", "content": [part]}]})
    reply = msgspec.json.encode({"role": "assistant", "content": [{"type": "text", "text": "a"}]})
    if dialect == "chat":
        reply = msgspec.json.encode(
            {"choices": [{"message": {"role": "assistant", "content": "a"}}]}
        )
    request, found = taken_out(body)
    asked = call([1], [2], dialect=dialect, request=request, reply=reply)
    [url] = images(asked)
    assert (digest_of(url), inlined(url, found)) == (picture.digest, data_url(picture))
    recorded = Trace(calls=(asked,), images=found)
    [sample], _ = build_samples(episode(), recorded)
    assert [recorded.images[digest] for digest in sample.images] == [picture]
    [row], _ = sft_rows(episode(), recorded)
    assert row.images == [data_url(picture)]
    assert row.messages[0]["content"] == "<image>"
