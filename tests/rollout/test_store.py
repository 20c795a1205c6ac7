"""The store in normal use, under damage, on a full disk, and under kill -9."""

import asyncio
import json
import os
import random
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
import zstandard

from rollout.errors import UsageError
from rollout.store import EpisodeStore
from rollout.types import Call, Episode, Grade, Outcome, ToolCall, Trace

WRITER = Path(__file__).with_name("store_writer.py")
PROJECT = WRITER.parents[2]


def episode(number: int, **fields) -> Episode:
    fields = {"id": f"mail#{number}", "task_id": "mail", "attempt": number, **fields}
    return Episode(outcome=Outcome.PASSED, grade=Grade(score=1.0, passed=True), **fields)


def trace(number: int) -> Trace:
    request = random.Random(number).randbytes(100)
    call = Call(index=0, dialect="chat", kind="main", request=request, reply=b"{}")
    return Trace(calls=(call,), answer=f"answer {number}", world={"sent": [number]})


@pytest.fixture
async def run(tmp_path) -> Path:
    """A folder with three episodes."""
    with EpisodeStore.create(tmp_path / "run") as store:
        for number in range(3):
            await store.append(episode(number), trace(number))
    return tmp_path / "run"


async def test_what_was_appended_is_read_back(run):
    with EpisodeStore.open(run) as store:
        assert store.recovered == ""
        await store.append(episode(3, reason="größer"), trace(3))
        assert store.trace(episode(3)) == trace(3)
    with EpisodeStore.read(run) as store:
        assert store.episodes() == [*map(episode, range(3)), episode(3, reason="größer")]
        assert [found for _, found in store] == [*map(trace, range(4))]


async def test_the_files_are_readable_without_this_project(run):
    lines = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == ["mail#0", "mail#1", "mail#2"]
    with (run / "traces.zst").open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        packed = stream.read()
    assert packed == b"".join(map(msgspec.msgpack.encode, map(trace, range(3))))


async def test_the_last_try_of_each_attempt_counts(tmp_path):
    with EpisodeStore.create(tmp_path) as store:
        await store.append(episode(0), trace(0))
        await store.append(episode(1), trace(1))
        await store.append(episode(0, id="mail#0.1", retry=1), trace(2))
        assert store.latest() == {
            ("mail", 0): episode(0, id="mail#0.1", retry=1),
            ("mail", 1): episode(1),
        }
        assert len(store.episodes()) == 3
        with pytest.raises(ValueError, match="stored already"):
            await store.append(episode(1), trace(1))


async def test_concurrent_appends_take_turns(tmp_path):
    with EpisodeStore.create(tmp_path) as store:
        await asyncio.gather(*(store.append(episode(n), trace(n)) for n in range(40)))
    with EpisodeStore.open(tmp_path) as store:
        assert sorted(e.attempt for e in store.episodes()) == list(range(40))
        assert all(found == trace(e.attempt) for e, found in store)


async def test_a_reader_follows_a_growing_run(run):
    with EpisodeStore.open(run) as writer, EpisodeStore.read(run) as reader:
        assert len(reader.episodes()) == 3
        await writer.append(episode(3), trace(3))
        assert reader.trace(reader.episodes()[3]) == trace(3)
        with pytest.raises(ValueError, match="reading only"):
            await reader.append(episode(4), trace(4))
    with (run / "episodes.jsonl").open("ab") as file:
        file.write(b'{"id":"half')
    with EpisodeStore.read(run) as reader:
        assert reader.trace(episode(3)) == trace(3)
        assert len(reader.episodes()) == 4


async def test_odd_values_cost_no_episode(tmp_path):
    odd = ToolCall(
        index=0,
        name="send",
        arguments={"half an emoji \ud83d": 2**80, "list": [-(2**70), 1, True]},
        status=200,
        reply=float("inf"),
        surface="native",
    )
    with EpisodeStore.create(tmp_path) as store:
        await store.append(episode(0, reason="\udcff"), Trace(tool_calls=(odd,), log="\ud83d"))
        found = store.trace(episode(0))
    assert found.log == "\\ud83d"
    assert found.tool_calls[0].reply == float("inf")
    assert found.tool_calls[0].arguments == {
        "half an emoji \\ud83d": str(2**80),
        "list": [str(-(2**70)), 1, True],
    }


async def test_what_could_not_be_read_back_is_refused(run):
    nonsense = msgspec.structs.replace(episode(3), grade=Grade(score=float("nan"), passed=False))
    with EpisodeStore.open(run) as store:
        with pytest.raises(UsageError, match=r"grade\.score"):
            await store.append(nonsense, trace(3))
        nameless = ToolCall(
            index=0, name=None, arguments={}, status=200, reply=None, surface="native"
        )
        with pytest.raises(UsageError, match=r"tool_calls\[0\]\.name"):
            await store.append(episode(3), Trace(tool_calls=(nameless,)))
        await store.append(episode(3), trace(3))
        assert len(store.episodes()) == 4


def test_create_and_open_know_what_is_there(tmp_path):
    with pytest.raises(UsageError, match="holds no run"):
        EpisodeStore.open(tmp_path)
    EpisodeStore.create(tmp_path / "run").close()
    with pytest.raises(UsageError, match="holds a run already"):
        EpisodeStore.create(tmp_path / "run")
    EpisodeStore.open(tmp_path / "run").close()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: File exists; a run needs a folder"):
        EpisodeStore.create(tmp_path / "file")


async def test_a_second_writer_is_refused(run):
    with EpisodeStore.open(run):
        with pytest.raises(UsageError, match=f"written by process {os.getpid()}"):
            EpisodeStore.open(run)
        assert len(EpisodeStore.read(run).episodes()) == 3
    EpisodeStore.open(run).close()


def cut_line(run: Path) -> None:
    data = (run / "episodes.jsonl").read_bytes()
    (run / "episodes.jsonl").write_bytes(data[:-20])


def cut_newline(run: Path) -> None:
    data = (run / "episodes.jsonl").read_bytes()
    (run / "episodes.jsonl").write_bytes(data[:-1])


def zero_line(run: Path) -> None:
    data = (run / "episodes.jsonl").read_bytes()
    start = data[:-1].rindex(b"\n") + 1
    (run / "episodes.jsonl").write_bytes(data[:start] + bytes(len(data) - start - 1) + b"\n")


def cut_frame(run: Path) -> None:
    data = (run / "traces.zst").read_bytes()
    (run / "traces.zst").write_bytes(data[:-1])


def flip_frame(run: Path) -> None:
    data = (run / "traces.zst").read_bytes()
    (run / "traces.zst").write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])


@pytest.mark.parametrize("damage", [cut_line, cut_newline, zero_line, cut_frame, flip_frame])
async def test_a_torn_tail_is_cut_and_reported(run, damage):
    damage(run)
    with EpisodeStore.open(run) as store:
        assert "cut" in store.recovered
        assert store.episodes() == [episode(0), episode(1)]
        await store.append(episode(2), trace(2))
        assert [found for _, found in store] == [trace(0), trace(1), trace(2)]
    with EpisodeStore.open(run) as store:
        assert store.recovered == ""
        assert len(store.episodes()) == 3


async def test_orphan_bytes_are_cut(run):
    with (run / "traces.zst").open("ab") as file:
        file.write(b"half a frame")
    with EpisodeStore.open(run) as store:
        assert "cut 0 bytes from episodes.jsonl and 12 from traces.zst" in store.recovered
        assert len(store.episodes()) == 3


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"id":"mail#1"', b'"id":"mail#1', "line 2 is damaged"),
        (b'"id":"mail#1"', b'"id":"mail#0"', "line 2 is damaged .*there twice"),
        (b'"attempt":1', b'"attempt":"1"', r"line 2 is damaged .*\$\.attempt"),
        (b'"attempt":2', b'"attempt":"2"', r"line 3 is damaged .*\$\.attempt"),
        (b'{"id":"mail#1"', b'\n{"id":"mail#1"', "line 2 is damaged"),
    ],
)
@pytest.mark.parametrize("how", [EpisodeStore.open, EpisodeStore.read])
async def test_damage_before_the_tail_is_an_error(run, old, new, what, how):
    data = (run / "episodes.jsonl").read_bytes()
    assert data.count(old) == 1
    (run / "episodes.jsonl").write_bytes(data.replace(old, new))
    with pytest.raises(UsageError, match=rf"episodes\.jsonl, {what}"):
        how(run).episodes()
    assert (run / "episodes.jsonl").read_bytes() == data.replace(old, new)


async def test_a_removed_line_is_an_error(run):
    lines = (run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (run / "episodes.jsonl").write_bytes(lines[0] + lines[2])
    with pytest.raises(UsageError, match=r"line 2 is damaged .*does not start at byte"):
        EpisodeStore.open(run)


@pytest.mark.parametrize("left", [0, 1])
async def test_lines_lost_at_the_end_take_no_traces_with_them(run, left):
    lines = (run / "episodes.jsonl").read_bytes().splitlines(keepends=True)
    (run / "episodes.jsonl").write_bytes(b"".join(lines[:left]))
    traces = (run / "traces.zst").read_bytes()
    with pytest.raises(UsageError, match="lines are missing, restore them"):
        EpisodeStore.open(run)
    assert (run / "traces.zst").read_bytes() == traces


@pytest.mark.parametrize("name", ["episodes.jsonl", "traces.zst"])
async def test_a_file_removed_under_a_running_store_is_an_error(run, name):
    with EpisodeStore.open(run) as store:
        (run / name).unlink()
        with pytest.raises(UsageError, match=f"{name} was removed"):
            await store.append(episode(3), trace(3))


@pytest.mark.parametrize("name", ["episodes.jsonl", "traces.zst"])
async def test_a_folder_in_a_files_place_is_one_line(run, name):
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises(UsageError, match=f"{name}: Is a directory"):
        EpisodeStore.open(run)


async def test_lost_traces_are_an_error(run):
    size = (run / "traces.zst").stat().st_size
    os.truncate(run / "traces.zst", size // 3)
    with pytest.raises(UsageError, match="several traces are missing"):
        EpisodeStore.open(run)
    assert len((run / "episodes.jsonl").read_text().splitlines()) == 3
    (run / "traces.zst").unlink()
    with pytest.raises(UsageError, match=r"traces\.zst is missing"):
        EpisodeStore.open(run)


async def test_a_damaged_trace_in_the_middle_is_named(run):
    data = bytearray((run / "traces.zst").read_bytes())
    data[len(data) // 2] ^= 1
    (run / "traces.zst").write_bytes(data)
    with EpisodeStore.open(run) as store:
        assert store.trace(episode(0)) == trace(0)
        with pytest.raises(UsageError, match="trace of episode 'mail#1'"):
            store.trace(episode(1))


FULL_DISK = """
    import asyncio, resource, sys
    from pathlib import Path
    from rollout.errors import UsageError
    from rollout.store import EpisodeStore
    from tests.rollout.test_store import episode, trace

    async def main(folder, limit):
        store = EpisodeStore.open(folder)
        sizes = [(folder / name).stat().st_size for name in ("episodes.jsonl", "traces.zst")]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            await store.append(episode(3), trace(3))
        except UsageError as error:
            print(error)
        assert sizes == [(folder / n).stat().st_size for n in ("episodes.jsonl", "traces.zst")]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await store.append(episode(3), trace(3))
        store.close()

    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


@pytest.mark.parametrize("file", ["episodes.jsonl", "traces.zst"])
async def test_a_full_disk_leaves_the_store_as_it_was(run, file):
    """The limit is hit half-way through the line, or half-way through the frame."""
    with EpisodeStore.open(run) as store:
        big = Trace(log=random.Random(0).randbytes(4000).hex())
        await store.append(episode(9, reason="x" * 9000 * (file == "episodes.jsonl")), big)
    limit = (run / file).stat().st_size + 50
    script = [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(run), str(limit)]
    ended = await asyncio.to_thread(
        subprocess.run, script, cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "File too large; episode 'mail#3' was not stored" in ended.stdout
    with EpisodeStore.open(run) as store:
        assert store.recovered == ""
        assert store.episodes()[-1] == episode(3)
        assert store.trace(episode(3)) == trace(3)


def test_kill_9_loses_and_doubles_nothing(tmp_path):
    """Twenty writers one after the other, each killed at a random moment of a random append."""
    chance = random.Random(5)
    told = -1
    for _ in range(20):
        writer = subprocess.Popen(
            [sys.executable, str(WRITER), str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
        )
        assert writer.stdout.readline() == "ready\n"
        for _ in range(chance.randint(0, 20)):
            told = int(writer.stdout.readline())
        if chance.random() < 0.8:
            threading.Event().wait(chance.random() * 0.004)
        writer.kill()
        told = max([told, *map(int, writer.communicate()[0].split("\n")[:-1])])
        with EpisodeStore.read(tmp_path / "run") as store:
            assert told <= len(store.episodes()) - 1 <= told + 1
    with EpisodeStore.open(tmp_path / "run") as store:
        assert [e.attempt for e, _ in store] == list(range(len(store.episodes())))


def conversation(calls: int) -> Trace:
    """A growing history: 16 KB of request and 4,000 prompt ids in the middle of the episode.

    Each call adds 200 sampled ids with log-probabilities, a reply and a tool result of Zipf-drawn words.
    """
    chance = np.random.default_rng(0)
    words = [
        "".join(chance.choice(list("abcdefghijklmnop"), n)) for n in chance.integers(2, 9, 5000)
    ]
    zipf = 1 / np.arange(1, 5001)
    zipf /= zipf.sum()

    def text(count: int) -> str:
        return " ".join(words[i] for i in chance.choice(5000, count, p=zipf))

    def ids(count: int) -> bytes:
        return chance.integers(0, 150_000, count).astype("<i4").tobytes()

    messages = [{"role": "system", "content": text(1500)}]
    prompt, made = ids(2000), []
    for index in range(calls):
        content, sampled = text(120), ids(200)
        made.append(
            Call(
                index=index,
                dialect="chat",
                kind="main",
                request=json.dumps({"model": "m", "messages": messages}).encode(),
                reply=json.dumps({"choices": [{"message": {"content": content}}]}).encode(),
                prompt_ids=prompt,
                response_ids=sampled,
                logprobs=(-chance.exponential(0.3, 200)).astype("<f4").tobytes(),
            )
        )
        messages += [
            {"role": "assistant", "content": content},
            {"role": "tool", "content": text(60)},
        ]
        prompt += sampled + ids(80)
    return Trace(calls=tuple(made))


async def test_repeated_prompts_are_not_stored_again(tmp_path):
    heavy = conversation(15)
    assert sum(len(c.prompt_ids) // 4 for c in heavy.calls) / 15 == pytest.approx(4000, rel=0.05)
    assert sum(len(c.request) for c in heavy.calls) / 15 == pytest.approx(16_000, rel=0.25)
    with EpisodeStore.create(tmp_path) as store:
        await store.append(episode(0), heavy)
        assert store.trace(episode(0)) == heavy
    assert (tmp_path / "traces.zst").stat().st_size / 15 < 5_000
