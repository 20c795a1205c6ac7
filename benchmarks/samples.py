"""What it takes to turn recorded calls into training samples, and whether they are right.

    python benchmarks/samples.py                                           ours alone
    python benchmarks/samples.py --agent-lightning VENV --verifiers VENV
    python benchmarks/samples.py --export 1000000                          a run of so many calls

The same synthetic rollouts go to every builder in the form that it takes: ours as records (ids as bytes),
agent-lightning's as triplets, verifiers' as messages with token spans. Building alone is timed, in CPU
seconds of one process, best of three. The rows are then compared with what was sampled, token by token
and context by context:

    dup      tokens that are trained again, by tokens sampled (an identical call counts once)
    missing  tokens that are not trained after the context that they were sampled in

Peers live in virtual environments of their own: `pip install agentlightning numpy` (1.0 and later), `pip
install verifiers` (0.4 and later), both Python 3.12. agent-lightning's adapter ends in torch tensors; an
environment without torch leaves them out, in its favour. verifiers' branches become samples as prime-rl
makes them: a sampled node that branches share is trained in the first.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
import types
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPEATS = 3
SYSTEM, SAID, HEARD = 2000, 150, 250
"""Tokens of the first prompt, of a response, and of a tool's output."""
GENERATE = [7, 8, 9]
"""Ends every prompt: what a chat template adds to have the model speak."""
VOCABULARY = 50_000


# ------------------------------------------------------------------------------------ the rollouts


@dataclass
class Message:
    role: str
    tokens: list[int]
    name: str
    """Stands for the text: equal names, equal texts."""


@dataclass
class Turn:
    """One model call."""

    messages: list[Message]
    response: list[int]
    reply: str
    kind: str = "main"
    agent: str = ""

    @property
    def prompt(self) -> list[int]:
        return [t for message in self.messages for t in message.tokens] + GENERATE

    @property
    def logprobs(self) -> list[float]:
        return [-(token % 64) / 64 for token in self.response]


@dataclass
class Agent:
    """Talks to the model; every call is kept."""

    rng: random.Random
    turns: list[Turn]
    kind: str = "main"
    name: str = ""
    thinking: int = 0
    """Leading tokens of a response that later prompts do not have."""
    scale: int = 1
    """Divides the length of every message."""
    history: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = self.history or [self.message("system", SYSTEM), self.message("user", 100)]

    def message(self, role: str, tokens: int) -> Message:
        drawn = [self.rng.randrange(10, VOCABULARY) for _ in range(tokens // self.scale)]
        return Message(role, drawn, f"m{self.rng.random()}")

    def ask(self, kind: str = "", extra: int = 0) -> Turn:
        said = self.message("assistant", SAID)
        more = [self.message("user", extra)] if extra else []
        turn = Turn([*self.history, *more], said.tokens, said.name, kind or self.kind, self.name)
        self.turns.append(turn)
        return turn

    def step(self) -> None:
        turn = self.ask()
        kept = GENERATE + turn.response[self.thinking :]
        stripped = f"{turn.reply} stripped" if self.thinking else turn.reply
        self.history.append(Message("assistant", kept, stripped))
        self.history.append(self.message("tool", HEARD))


def linear(agent: Agent) -> None:
    for _ in range(50):
        agent.step()


def stripped(agent: Agent) -> None:
    agent.thinking = 100
    linear(agent)


def compacted(agent: Agent) -> None:
    for number in range(48):
        agent.step()
        if number % 16 == 15:
            agent.ask("compaction", extra=50)
            agent.history = [agent.history[0], agent.message("user", 400)]


def subagents(agent: Agent) -> None:
    for _ in range(10):
        agent.step()
    helpers = [Agent(agent.rng, agent.turns, "subagent", str(n)) for n in range(3)]
    for _ in range(10):
        for helper in helpers:
            helper.step()
    for _ in range(10):
        agent.step()


def retried(agent: Agent) -> None:
    for number in range(45):
        agent.step()
        if number % 9 == 8:
            agent.turns.append(agent.turns[-1])


def side_calls(agent: Agent) -> None:
    for number in range(40):
        agent.step()
        if number % 4 == 3:
            agent.ask("side", extra=20)


SHAPES: dict[str, Callable[[Agent], None]] = {
    "linear": linear,
    "thinking stripped": stripped,
    "compaction": compacted,
    "3 sub-agents": subagents,
    "retries": retried,
    "side calls": side_calls,
}


def rollout(shape: str, seed: int, scale: int = 1) -> list[Turn]:
    turns: list[Turn] = []
    SHAPES[shape](Agent(random.Random(seed), turns, scale=scale))
    return turns


# ------------------------------------------------------------------------------------ the builders

Row = tuple[bytes, bytes]
"""Token ids as int32, and a byte each: 1 where the token is trained."""


class Ours:
    """`train.samples.build_samples`."""

    def __init__(self) -> None:
        from rollout.types import Episode, Outcome
        from train.samples import build_samples

        self.build = build_samples
        self.episode = Episode(id="e#0", task_id="e", attempt=0, outcome=Outcome.PASSED)

    def take(self, turns: list[Turn]) -> Any:
        return record(turns)

    def run(self, taken: Any) -> Any:
        return self.build(self.episode, taken)[0]

    def rows(self, built: Any) -> Iterator[Row]:
        for sample in built:
            mask = bytes(len(sample.prompt_ids)) + sample.response_mask.tobytes()
            yield sample.prompt_ids.tobytes() + sample.response_ids.tobytes(), mask


class AgentLightning:
    """`agentlightning.verl.rollout_adapter.RolloutAdapter`, level `trajectory`."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        try:
            import torch  # noqa: F401
        except ImportError:
            self._leave_out_tensors()
        from agentlightning.verl.agl_rollout_manager import CompletedRollout, Triplet
        from agentlightning.verl.rollout_adapter import RolloutAdapter

        self.adapter, self.rollout, self.triplet = RolloutAdapter, CompletedRollout, Triplet

    def _leave_out_tensors(self) -> None:
        """Modules that keep the lists which torch would be given."""
        from unittest.mock import MagicMock

        def keep(values: Any) -> Any:
            self.tensors.append(values)
            return MagicMock()

        for name in ("torch", "tensordict", "verl"):
            module = types.ModuleType(name)
            module.__getattr__ = lambda _: MagicMock()  # type: ignore[method-assign]
            sys.modules[name] = module
        sys.modules["torch"].LongTensor = keep  # type: ignore[attr-defined]
        sys.modules["torch"].device = str  # type: ignore[attr-defined]

    def take(self, turns: list[Turn]) -> Any:
        triplets = [
            self.triplet(
                prompt={"token_ids": turn.prompt},
                response={"token_ids": turn.response, "log_probs": turn.logprobs},
            )
            for turn in turns
        ]
        longest = max(len(turn.prompt) for turn in turns)
        adapter = self.adapter(
            max_prompt_length=longest,
            max_response_length=longest + SAID - SYSTEM,
            device="cpu",
            pad_token_id=0,
            trace_aggregator_level="trajectory",
        )
        done = self.rollout(
            rollout_id="r",
            data_id="d",
            step=0,
            sample_idx_in_step=0,
            enqueue_time=0.0,
            final_reward=1.0,
            triplets=triplets,
        )
        return adapter, done

    def run(self, taken: Any) -> Any:
        adapter, done = taken
        self.tensors.clear()
        data, _ = adapter.get_train_data_batch([done])
        return list(self.tensors) or data

    def rows(self, built: Any) -> Iterator[Row]:
        if not isinstance(built, list):
            names = ("prompts", "responses", "response_mask", "attention_mask")
            prompts, responses, masks, attention = (built.batch[name].tolist() for name in names)
            width = len(prompts[0])
            seen, heard = [a[:width] for a in attention], [a[width:] for a in attention]
        else:
            prompts, seen, responses, heard, masks = built[:5]
        for prompt, attended, response, replied, mask in zip(
            prompts, seen, responses, heard, masks, strict=True
        ):
            before = [token for token, real in zip(prompt, attended, strict=True) if real]
            length = sum(replied)
            ids = array("i", before + response[:length])
            yield ids.tobytes(), bytes(len(before)) + bytes(mask[:length])


class Verifiers:
    """`verifiers.v1.graph` to `Trace.branches`, shared nodes trained in the first."""

    def __init__(self) -> None:
        from verifiers.v1 import graph, trace, types

        self.graph, self.trace, self.types = graph, trace, types

    def take(self, turns: list[Turn]) -> Any:
        return [(self._messages(turn), self._response(turn)) for turn in turns]

    def _messages(self, turn: Turn) -> list[Any]:
        t = self.types
        made = {
            "system": t.SystemMessage,
            "user": t.UserMessage,
            "assistant": t.AssistantMessage,
        }
        return [
            t.ToolMessage(tool_call_id="c", content=m.name)
            if m.role == "tool"
            else made[m.role](content=m.name)
            for m in turn.messages
        ]

    def _response(self, turn: Turn) -> Any:
        t = self.types
        spans, end = [], 0
        for message in turn.messages:
            spans.append((end, end + len(message.tokens)))
            end += len(message.tokens)
        tokens = t.TurnTokens(
            prompt_ids=turn.prompt,
            completion_ids=turn.response,
            completion_logprobs=turn.logprobs,
            message_spans=spans,
        )
        said = t.AssistantMessage(content=turn.reply)
        return t.Response(
            id="r", created=0, model="m", message=said, finish_reason="stop", tokens=tokens
        )

    def run(self, taken: Any) -> Any:
        trace = self.trace.Trace.model_construct(nodes=[], calls=[], tools=[])
        for prompt, response in taken:
            self.graph.prepare_turn(trace, prompt).commit(response)
        trained: set[int] = set()
        samples = []
        for branch in trace.branches:
            mask: list[bool] = []
            for node in branch.nodes:
                again = id(node) in trained
                mask += [False] * len(node.mask) if again else node.mask
                if node.sampled:
                    trained.add(id(node))
            samples.append((branch.token_ids, mask, branch.logprobs))
        return samples

    def rows(self, built: Any) -> Iterator[Row]:
        for ids, mask, _ in built:
            yield array("i", ids).tobytes(), bytes(mask)


BUILDERS: dict[str, Callable[[], Any]] = {
    "anyharness": Ours,
    "agent-lightning": AgentLightning,
    "verifiers": Verifiers,
}


def record(turns: list[Turn]) -> Any:
    """The rollout as our gateway stores it."""
    from rollout.types import Call, Trace

    def ids(values: list[int]) -> bytes:
        return array("i", values).tobytes()

    calls = (
        Call(
            index=index,
            dialect="chat",
            kind=turn.kind,  # type: ignore[arg-type]
            agent=turn.agent,
            request=b'{"messages":[]}',
            reply=b'{"choices":[{"message":{"role":"assistant","content":"x"}}]}',
            finish="stop",
            prompt_ids=ids(turn.prompt),
            response_ids=ids(turn.response),
            logprobs=array("f", turn.logprobs).tobytes(),
        )
        for index, turn in enumerate(turns)
    )
    return Trace(calls=tuple(calls))


# ------------------------------------------------------------------------------------ measuring


@dataclass
class Measured:
    calls: int
    seconds: float
    peak: int
    """Bytes allocated while one rollout is built, result included."""
    rows: list[Row]


def work(builder: str, shape: str, rollouts: int, out: Path) -> None:
    """Measure in this process, and leave the result in a file."""
    measured = Measured(0, 0.0, 0, [])
    build = BUILDERS[builder]()
    built = None
    for seed in range(rollouts):
        turns = rollout(shape, seed)
        times = []
        for _ in range(REPEATS):
            taken = build.take(turns)  # a builder may keep parts of what it takes
            begin = time.process_time()
            built = build.run(taken)
            times.append(time.process_time() - begin)
        measured.seconds += min(times)
        measured.calls += len(turns)
        measured.rows += build.rows(built)
    taken = build.take(turns)
    built = None
    tracemalloc.start()
    built = build.run(taken)
    measured.peak = tracemalloc.get_traced_memory()[1]
    out.write_bytes(pickle.dumps(vars(measured)))


def measure(python: str, builder: str, shape: str, rollouts: int) -> Measured:
    """Measure in a process of its own."""
    with tempfile.NamedTemporaryFile() as out:
        argv = [python, __file__, "--work", builder, shape, str(rollouts), out.name]
        root = str(Path(__file__).parent.parent) if builder == "anyharness" else ""
        environment = {**os.environ, "PYTHONPATH": root}
        subprocess.run(argv, check=True, env=environment, stdout=subprocess.DEVNULL)
        return Measured(**pickle.loads(Path(out.name).read_bytes()))


def judge(rows: list[Row], shape: str, rollouts: int) -> tuple[float, float]:
    """Duplicated and missing tokens, each by the number of tokens sampled."""
    import numpy as np

    weights = np.random.default_rng(0).integers(1, 2**63, 200_000, np.uint64)

    def keys(ids: Any) -> Any:
        """One number for each token in its context."""
        return np.cumsum(weights[: len(ids)] * (ids.astype(np.uint64) + np.uint64(1)))

    trained = [keys(np.frombuffer(ids, "<i4"))[np.frombuffer(mask, bool)] for ids, mask in rows]
    sampled = [
        keys(np.array(turn.prompt + turn.response, "<i4"))[-len(turn.response) :]
        for seed in range(rollouts)
        for turn in rollout(shape, seed)
    ]
    wanted, found = np.unique(np.concatenate(sampled)), np.concatenate(trained)
    distinct = np.unique(found)
    missing = len(np.setdiff1d(wanted, distinct))
    return (len(found) - len(distinct)) / len(wanted), missing / len(wanted)


def compare(pythons: dict[str, str], rollouts: int) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("rollouts", "builder", *("calls/s", "rows/rollout", "dup", "missing", "KB/call"))
    for shape in SHAPES:
        for builder, python in pythons.items():
            done = measure(python, builder, shape, rollouts)
            again, missing = judge(done.rows, shape, rollouts)
            calls = done.calls / rollouts
            table.add_row(
                f"{shape}, {calls:.0f} calls",
                builder,
                f"{done.calls / done.seconds:,.0f}",
                f"{len(done.rows) / rollouts:.0f}",
                f"{again:.1%}",
                f"{missing:.1%}",
                f"{done.peak / calls / 1024:.0f}",
            )
        table.add_section()
    Console(width=110).print(table)


# ------------------------------------------------------------------------------------ a large run


def export(calls: int) -> None:
    """Store a run of that many calls (of 2,500 tokens on average), and export it as Parquet.

    The peak is the exporting process's.
    """
    with tempfile.TemporaryDirectory() as folder:
        run, out = Path(folder, "run"), Path(folder, "rl.parquet")
        asyncio.run(fill(run, calls))
        stored = sum(file.stat().st_size for file in run.iterdir())
        argv = [sys.executable, "-m", "train.export", str(run), "--for", "rl", "--out", str(out)]
        begin = time.perf_counter()
        subprocess.run([*argv, "--json"], check=True, cwd=Path(__file__).parent.parent)
        seconds = time.perf_counter() - begin
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = {
            "calls": calls,
            "store MB": stored / 1e6,
            "file MB": out.stat().st_size / 1e6,
            "seconds": seconds,
            "CPU seconds": usage.ru_utime + usage.ru_stime,
            "calls/s": calls / seconds,
            "peak MB": usage.ru_maxrss / 1024,
        }
        print(json.dumps({name: round(value, 1) for name, value in told.items()}))


async def fill(run: Path, calls: int) -> None:
    from rollout.store import EpisodeStore
    from rollout.types import Episode, Grade, Outcome

    traces = [record(rollout("linear", seed, scale=5)) for seed in range(100)]
    with EpisodeStore.create(run) as store:
        for number in range(calls // len(traces[0].calls)):
            task, attempt = divmod(number, 8)
            episode = Episode(
                id=f"{task}#{attempt}",
                task_id=str(task),
                attempt=attempt,
                outcome=Outcome.PASSED,
                grade=Grade(score=attempt / 8, passed=True),
            )
            await store.append(episode, traces[number % len(traces)])


def main() -> None:
    parser = argparse.ArgumentParser(description="Training samples beside peers' builders.")
    parser.add_argument("--rollouts", type=int, default=8, metavar="N", help="of each shape (8)")
    parser.add_argument("--agent-lightning", metavar="VENV")
    parser.add_argument("--verifiers", metavar="VENV")
    parser.add_argument("--export", type=int, metavar="CALLS", help="time an export instead")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        builder, shape, rollouts, out = options.work
        work(builder, shape, int(rollouts), Path(out))
    elif options.export:
        export(options.export)
    else:
        peers = {"agent-lightning": options.agent_lightning, "verifiers": options.verifiers}
        pythons = {name: f"{venv}/bin/python" for name, venv in peers.items() if venv}
        compare({"anyharness": sys.executable, **pythons}, options.rollouts)


if __name__ == "__main__":
    main()
