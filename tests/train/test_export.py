"""Training files from the command line, read back and verified."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.traces import call, episode, trace

from rollout.store import EpisodeStore
from rollout.types import Episode, Grade, Outcome, Trace, Usage
from train.export import main
from train.files import read_rows
from train.sft_rows import template_of
from train.verify import verify_rl

Pairs = Iterable[tuple[Episode, Trace]]

FORMATS = [".jsonl", ".parquet"]

TEMPLATE = """\
{%- if tools %}<tools>{{ tools | tojson }}</tools>{% endif -%}
{%- for m in messages -%}
<{{ m.role }}>{% if m.reasoning_content is defined %}({{ m.reasoning_content }}){% endif %}{{ m.content }}
{%- for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor -%}
{%- endfor -%}"""


@pytest.fixture(autouse=True)
def _format_can_be_written(request: pytest.FixtureRequest) -> None:
    if ".parquet" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")


def store_of(folder: Path, episodes: Pairs) -> Path:
    async def fill(store: EpisodeStore) -> None:
        for one, its in episodes:
            await store.append(one, its)

    with EpisodeStore.create(folder) as store:
        asyncio.run(fill(store))
    return folder


def said(text: str, *, answer: str = "", call_id: str = "c1") -> dict[str, Any]:
    """Request and reply of one call: a question, then a tool call; with `answer`, the turn after it."""
    function = {"name": "look", "arguments": '{"at": 1}'}
    calls = [{"id": call_id, "type": "function", "function": function}]
    first = {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "hm"}
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    history: list[Any] = [{"role": "user", "content": text}]
    reply: dict[str, Any] = first
    if answer:
        history += [first, {"role": "tool", "tool_call_id": call_id, "content": "seen"}]
        reply = {"role": "assistant", "content": answer}
    return {
        "request": msgspec.json.encode({"messages": history, "tools": tools}),
        "reply": msgspec.json.encode({"choices": [{"message": reply}]}),
    }


def attempt(
    task: str, number: int, score: float, *, call_id: str = "c1", **more: Any
) -> tuple[Episode, Trace]:
    """Two turns of a main agent, one call of a sub-agent, one refused."""
    calls = trace(
        call([1, number], [2], **said(task, call_id=call_id)),
        call([1, number, 2, 30], [3, 4], **said(task, answer="Done.", call_id=call_id)),
        call([7], [8], kind="subagent", agent="a", **said("sub")),
        call([1], [], status=400),
    )
    return episode(task, number, score, **more), calls


@pytest.fixture
def run(tmp_path: Path) -> Path:
    broken = episode("one", 2, outcome=Outcome.INFRA_ERROR, grade=None, cause="model")
    return store_of(
        tmp_path / "run",
        [
            attempt("one", 0, 1.0),
            attempt("one", 1, 0.0, call_id="c2"),
            (broken, attempt("one", 2, 0.0)[1]),
            attempt("two", 0, 1.0),
            attempt("two", 1, 1.0, call_id="other"),
        ],
    )


def export(
    capsys: pytest.CaptureFixture[str], run: Path, out: Path, *options: str, code: int = 0
) -> Any:
    with pytest.raises(SystemExit) as ended:
        main([str(run), "--out", str(out), "--json", *options])
    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    return json.loads(printed.out) if code != 2 else printed.err


@pytest.mark.parametrize("suffix", FORMATS)
def test_rl_rows_have_tokens_and_credit(
    run: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"rl{suffix}"
    counts = export(capsys, run, out, "--for", "rl", "--estimator", "dr_grpo", "--verify")
    assert counts["rows"] == 8
    assert counts["credit"]["unclean"] == 1
    assert counts["credit"]["zero_variance"] == 1
    assert counts["samples"]["refused"] == 4
    assert counts["verified"] == {"rows": 8, "calls": 12, "tokens": 16}
    main_row, sub_row = list(read_rows(out))[:2]
    assert main_row["prompt_ids"] == [1, 0]
    assert main_row["response_ids"] == [2, 30, 3, 4]
    assert main_row["response_mask"] == [1, 0, 1, 1]
    assert main_row["logprobs"] == [-2 / 1024, 0, -3 / 1024, -4 / 1024]
    assert (main_row["step_starts"], main_row["step_stops"]) == ([0, 2], [1, 4])
    assert (main_row["reward"], main_row["advantage"]) == (1.0, 0.5)
    assert (main_row["loss_weight"], sub_row["loss_weight"]) == (0.75, 0.25)
    assert (sub_row["kind"], sub_row["agent"]) == ("subagent", "a")
    assert sub_row["step_returns"] == [1.0]


def test_options_reach_samples_and_credit(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rl.jsonl"
    options = (
        "--calls",
        "main",
        "--gamma",
        "0.5",
        "--zero-variance",
        "filter",
        "--unclean",
        "score",
    )
    counts = export(capsys, run, out, "--for", "rl", *options, "--verify")
    assert counts["samples"]["by_policy"] == 3
    rows = list(read_rows(out))
    assert {row["episode_id"] for row in rows} == {"one#0", "one#1", "one#2"}
    assert rows[0]["step_returns"] == [0.5, 1.0]
    assert rows[2]["reward"] == 0.0


def test_overlong_episodes_are_penalised_and_left_worlds_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left = {"outcome": Outcome.INFRA_ERROR, "grade": Grade(score=0.5, passed=False)}
    run = store_of(
        tmp_path / "run",
        [
            attempt("one", 0, 1.0, usage=Usage(completion=75)),
            attempt("one", 1, 0.0),
            attempt("one", 2, 0.0, **left),
        ],
    )
    out = tmp_path / "rl.jsonl"
    options = ("--soft-overlong", "100:50", "--score-world")
    counts = export(capsys, run, out, "--for", "rl", *options)
    assert counts["credit"]["valued"] == 1
    rewards = {row["episode_id"]: row["reward"] for row in read_rows(out)}
    assert rewards == {"one#0": 0.5, "one#1": 0.0, "one#2": 0.5}


@pytest.mark.parametrize("suffix", FORMATS)
def test_sft_rows_are_of_passed_episodes_without_duplicates(
    run: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"sft{suffix}"
    counts = export(capsys, run, out, "--for", "sft", "--calls", "main", "--verify")
    assert counts["rows"] == 2
    assert counts["episodes"] == {"episodes": 2, "not_passed": 2, "duplicates": 1}
    assert counts["verified"] == {"rows": 2, "replies": 4}
    row = next(iter(read_rows(out)))
    assert row["trained"] == [1, 3]
    messages, tools = template_of(row)
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == {"at": 1}
    assert messages[1]["reasoning_content"] == "hm"
    assert messages[3] == {"role": "assistant", "content": "Done."}
    assert tools[0]["function"]["name"] == "look"


def test_sft_can_take_failed_episodes_and_a_few_of_each_task(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--for", "sft", "--calls", "main", "--failed", "--per-task", "1")
    counts = export(capsys, run, tmp_path / "sft.jsonl", *options)
    assert counts["rows"] == 2
    assert counts["episodes"]["not_passed"] == 0


@pytest.mark.verl  # whose environment has both
@pytest.mark.parametrize("suffix", FORMATS)
def test_sft_loads_in_datasets_and_renders_with_a_template(
    run: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    datasets = pytest.importorskip("datasets", reason="needs datasets: make verl-cpu")
    jinja2 = pytest.importorskip("jinja2", reason="needs jinja2: make verl-cpu")
    out = tmp_path / f"sft{suffix}"
    export(capsys, run, out, "--for", "sft", "--calls", "main")
    kind = "parquet" if suffix == ".parquet" else "json"
    loaded = datasets.load_dataset(kind, data_files=str(out), cache_dir=tmp_path / "cache")["train"]
    messages, tools = template_of(loaded[0])
    text = jinja2.Template(TEMPLATE).render(messages=messages, tools=tools)
    assert text.endswith('<user>one<assistant>(hm)[look {"at": 1}]<tool>seen<assistant>Done.')
    assert text.startswith("<tools>[{")


def test_only_the_last_try_of_an_attempt_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = episode("one", 0, outcome=Outcome.INFRA_ERROR, grade=None)
    again = attempt("one", 0, 1.0, id="one#0.1", retry=1)
    run = store_of(tmp_path / "run", [(first, again[1]), again, attempt("one", 1, 0.0)])
    counts = export(capsys, run, tmp_path / "rl.jsonl", "--for", "rl")
    assert counts["credit"]["episodes"] == 2
    assert counts["credit"]["unclean"] == 0


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"prompt_ids": [9, 9]}, "another prompt than recorded"),
        ({"response_ids": [2, 30, 3, 5]}, "another response than recorded"),
        ({"response_mask": [1, 1, 1, 1]}, "tokens are trained that no call sampled"),
        ({"logprobs": [-1, 0, -1, -1]}, "other logprobs than recorded"),
        ({"logprobs": [-1, 0, -1]}, "differ in length"),
        ({"step_calls": [0, 3]}, "call 3 was not answered"),
        ({"step_calls": [0, 2]}, "call 2 is there twice"),
        ({"loss_weight": 1.0}, "loss weights sum to 1.25"),
    ],
)
def test_verification_finds_what_is_wrong(
    run: Path,
    tmp_path: Path,
    change: dict[str, Any],
    problem: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "rl.jsonl"
    export(capsys, run, out, "--for", "rl")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    rows[0] |= change
    out.write_text("\n".join(map(json.dumps, rows)))
    with EpisodeStore.read(run) as store:
        found = verify_rl(out, store, calls=12)
    assert any(problem in line for line in found.problems), found.problems


def test_verification_misses_no_call(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rl.jsonl"
    export(capsys, run, out, "--for", "rl")
    out.write_text("".join(out.read_text().splitlines(keepends=True)[2:]))
    with EpisodeStore.read(run) as store:
        assert verify_rl(out, store, calls=12).problems == [f"{out} has 9 calls, not 12"]


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        ("rl.csv", (), r"rl\.csv: the name must end in .jsonl or .parquet"),
        ("there.jsonl", (), r"there\.jsonl exists already"),
        ("no/such/rl.jsonl", (), r"No such file or directory; choose another place"),
        ("rl.jsonl", ("--soft-overlong", "1:2"), r"--soft-overlong"),
        ("rl.jsonl", ("--estimator", "ppo"), r"--estimator.*--help"),
        ("rl.jsonl", ("--gamma", "1.5"), r"--gamma: must be above 0 and at most 1"),
        ("rl.jsonl", ("--max-tokens", "-1"), r"--max-tokens: must not be negative"),
    ],
)
def test_bad_input_is_one_line(
    run: Path,
    tmp_path: Path,
    name: str,
    options: tuple[str, ...],
    error: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "there.jsonl").write_text("")
    message = export(capsys, run, tmp_path / name, "--for", "rl", *options, code=2)
    assert message.startswith("error: ")
    assert message.count("\n") == 1
    assert re.search(error, message), message


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_names_the_file_and_leaves_nothing(
    run: Path, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"rows{suffix}"
    (tmp_path / f".{out.name}.part").symlink_to("/dev/full")
    message = export(capsys, run, out, "--for", "sft", code=2)
    assert re.match(rf"error: {out}: .*No space left on device; ", message)
    assert list(tmp_path.iterdir()) == [run]


def test_a_run_without_ids_says_so_and_leaves_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = trace(call([], [], **said("one")))
    run = store_of(tmp_path / "run", [(episode(attempt=n, score=n), bare) for n in range(2)])
    out = tmp_path / "rl.jsonl"
    message = export(capsys, run, out, "--for", "rl", code=2)
    assert "have no token ids" in message
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    export(capsys, run, tmp_path / "sft.jsonl", "--for", "sft", "--verify")


PEAK = """
import resource, sys
from train.export import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)
"""


@pytest.mark.parametrize("suffix", FORMATS)
def test_memory_does_not_grow_with_the_run(tmp_path: Path, suffix: str) -> None:
    """128 MB of samples more cost less than 60 MB: what the allocator keeps."""
    long = msgspec.structs.replace(call([1], [2]), prompt_ids=bytes(2**23))

    def peak(episodes: int) -> int:
        pairs = ((episode("one", n, n % 2), trace(long)) for n in range(episodes))
        run = store_of(tmp_path / f"run-{episodes}", pairs)
        out = tmp_path / f"rl-{episodes}{suffix}"
        argv = [sys.executable, "-c", PEAK, str(run), "--for", "rl", "--out", str(out)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        return int(done.stderr)

    small, large = peak(8), peak(24)
    assert large - small < 60e6, (small, large)


@pytest.mark.parametrize(
    ("purpose", "score", "why"),
    [
        (
            "rl",
            1.0,
            "no task has two graded attempts, which an advantage needs; run with --attempts 2",
        ),
        ("sft", 0.0, "no episode passed; --failed takes the others too"),
    ],
)
def test_an_empty_file_is_explained(
    purpose: str, score: float, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = store_of(tmp_path / "run", [attempt("one", 0, score)])
    with pytest.raises(SystemExit) as ended:
        main([str(run), "--out", str(tmp_path / "out.jsonl"), "--for", purpose])
    assert ended.value.code == 0
    captured = capsys.readouterr()
    assert f"no rows: {why}" in captured.err
    assert not any(line.endswith(":") for line in captured.out.splitlines())
