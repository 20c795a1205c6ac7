"""Does a policy learn here what it is asked to, and where else does it hold? `make learn` finds out.

On two CPU cores, within an hour, from nothing: a tiny Qwen3 (`train.tiny`) is pretrained on the words of
reference episodes, taught by SFT in two harnesses, and stopped early; then GRPO goes on from there, in
`react` (tool calls), in `react_text` (actions as text), and in both, with three seeds each. Every run is
tested in both harnesses on held-out drills: names, numbers and days that no training task has.

    teacher/   reference episodes       pretrained/, start/   the model without and with SFT
    before/    evaluation of start/     ARM-SEED/  one run of train.grpo

docs/learning.md and docs/learning.svg are written from them.

A stage whose result is there is not run again, and a run that was cut off is resumed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from rollout.errors import RolloutError
from rollout.processes import cancel_on_signals
from rollout.types import Trace
from train.learn_report import HARNESSES, Arm, write_report
from train.lossy import render_with
from train.messages import conversation
from train.mix import parse_mix
from train.packages import need_torch
from train.runs import Attempts
from train.samples import Sample
from train.settings import note, noted
from train.sft import SftRules, distil, taught, train_on

__all__ = ["main"]

SEEDS = (0, 1, 2)
ARMS = (
    Arm("react", "react", "react_text"),
    Arm("react_text", "react_text", "react"),
    Arm("both", "react,react_text", ""),
)

DRILLS = "office_drills --families mail,order,expense"
"""Without the longest ones."""
HELD_OUT = f"{DRILLS} --split held-out --count 99"
TEACHING = f"{DRILLS} --split train --count 2000"
"""What the teacher plays, in each harness."""
PRACTICE = f"{DRILLS} --split train --first 100000 --count 4000"
"""What GRPO trains on: drills that the teacher never played."""

WIDTH, LAYERS = 64, 3
TOKENIZER_EPISODES = 1500
PRETRAINING = SftRules(batch=16, learning_rate=4e-3, warmup=50)
PRETRAINING_UPDATES = 1500
TUNING = SftRules(batch=32, learning_rate=1e-3, warmup=10)
TUNING_UPDATES = 20
"""Few: what is left to learn is for GRPO."""

STEPS = 30
MAX_TOKENS = "96"
CONCURRENCY = "64"
RL = {
    "--batch": "16",
    "--group": "8",
    "--mini-batches": "4",
    "--learning-rate": "2e-4",
    "--warmup": "2",
    "--max-tokens": MAX_TOKENS,
    "--concurrency": CONCURRENCY,
    "--steps": str(STEPS),
    "--eval-every": str(STEPS),
}
Say = Callable[[str], None]

AT_ONCE = 2
"""Runs at a time, on one thread each: faster than one run on two."""


@dataclass(frozen=True)
class Document:
    """Text to be pretrained on, as a row: all of it counts."""

    prompt_ids: NDArray[np.int32]
    response_ids: NDArray[np.int32]

    @property
    def response_mask(self) -> NDArray[np.bool_]:
        return np.ones(len(self.response_ids), np.bool_)


def main(argv: Sequence[str] | None = None) -> None:
    """Run all stages."""
    parser = argparse.ArgumentParser(
        prog="python -m train.learn",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    out, docs = Path("runs/learn"), Path("docs")
    parser.add_argument("--out", type=Path, default=out, metavar="DIR", help=f"stages ({out})")
    parser.add_argument("--docs", type=Path, default=docs, metavar="DIR", help=f"report ({docs})")
    options = parser.parse_args(argv)
    try:
        need_torch("train.learn")
        asyncio.run(_learn(options.out, options.docs, Console(stderr=True)))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit("interrupted; the same command goes on")
    except (RolloutError, OSError) as error:
        sys.exit(f"error: {error}")


async def _learn(out: Path, docs: Path, screen: Console) -> None:
    begin = time.time()

    def say(what: str) -> None:
        screen.print(f"{(time.time() - begin) / 60:5.1f} min  {what}")

    start = out / "start"
    if not start.exists():
        await _start(out, say)
        _remember(out, minutes=(time.time() - begin) / 60)
        begin = time.time()
    cancel_on_signals()  # or else a run would outlive this one, and be in the way of the next
    for harness in HARNESSES:
        say(f"held-out drills in {harness}, before GRPO")
        await _python("suites.office_drills", *_before(harness, start, out))
    runs = [(arm, seed) for seed in SEEDS for arm in ARMS]
    slots = asyncio.Semaphore(AT_ONCE)

    async def run(arm: Arm, seed: int) -> None:
        async with slots:
            say(f"GRPO in {arm.name}, seed {seed}")
            await _grpo(arm, seed, out)

    async with asyncio.TaskGroup() as group:
        for arm, seed in runs:
            group.create_task(run(arm, seed))
    say("all runs are done")
    _remember(out, minutes=(time.time() - begin) / 60)
    write_report(out, docs, ARMS, SEEDS)


def _remember(out: Path, **values: float) -> None:
    """Keep a figure for the report; minutes add up over calls that were cut off."""
    path = out / "figures.json"
    told = noted(path) or {}
    values["minutes"] = values.get("minutes", 0) + told.get("minutes", 0)
    note(path, told | values)


async def _start(out: Path, say: Say) -> None:
    """Make the model that knows both harnesses, and not well."""
    from train.local.engine import load_model
    from train.tiny import save

    say("the teacher plays, in each harness")
    mix = parse_mix(",".join(HARNESSES))
    episodes = await distil(TEACHING, mix, out / "teacher", n=1, concurrency=32)
    if not (out / "pretrained").exists():
        _pretrain(episodes, out, say)
    model, tokenizer = load_model(str(out / "pretrained"))
    rows = taught(episodes, render_with(tokenizer), end=tokenizer.eos_token_id)
    say("SFT: the teacher's replies alone, under the harnesses' own prompts")
    _fit(model, rows, TUNING, TUNING_UPDATES, say)
    _remember(out, parameters=sum(parameter.numel() for parameter in model.parameters()))
    save(model, tokenizer, out / "start")


def _pretrain(episodes: Attempts, out: Path, say: Say) -> None:
    """A tokenizer, and a model that has read every transcript."""
    from train.tiny import make_model, make_tokenizer, save

    every = max(1, len(episodes) // TOKENIZER_EPISODES)
    tokenizer = make_tokenizer(_texts(trace for _, trace in episodes[::every]))
    rows = taught(episodes, render_with(tokenizer), end=tokenizer.eos_token_id)
    model = make_model(tokenizer, seed=0, width=WIDTH, layers=LAYERS)
    say(f"pretraining on {len(rows)} transcripts, {len(tokenizer)} kinds of tokens")
    opening = tokenizer.convert_tokens_to_ids("<|im_start|>")
    documents = [_document(row, opening) for row in rows]
    _fit(model, documents, PRETRAINING, PRETRAINING_UPDATES, say)
    save(model, tokenizer, out / "pretrained")


def _fit(model: Any, rows: Sequence[Any], rules: SftRules, updates: int, say: Say) -> None:
    epochs = updates * rules.batch / len(rows)
    for update, loss in train_on(model, rows, msgspec.structs.replace(rules, epochs=epochs)):
        if update % 100 == 0 or update == updates - 1:
            say(f"  update {update}: loss {loss:.3f}")


def _texts(traces: Iterator[Trace]) -> Iterator[str]:
    """What the tokenizer is trained on."""
    for trace in traces:
        told = conversation(trace.calls[-1])
        yield from (msgspec.json.encode(tool["function"]).decode() for tool in told.tools)
        for message in told.messages:
            yield str(message.get("content") or "")
            for call in message.get("tool_calls") or ():
                yield f'{{"name": "{call["function"]["name"]}", "arguments": '
                yield call["function"]["arguments"]


def _document(row: Sample, opening: int) -> Document:
    """A transcript without the system prompt, which is always the same."""
    ids = np.concatenate([row.prompt_ids, row.response_ids])
    begin = int(np.flatnonzero(ids == opening)[1])
    return Document(ids[begin : begin + 1], ids[begin + 1 :])


def _before(harness: str, model: Path, out: Path) -> list[str]:
    """Evaluation of the model that all runs begin with, as their own first one would be."""
    folder = out / "before" / harness
    argv = [*shlex.split(HELD_OUT)[1:], "--harness", harness, "--model", f"train.policy:{model}"]
    argv += ["--temperature", "1", "--max-tokens", MAX_TOKENS, "--concurrency", CONCURRENCY]
    argv += ["--out", str(folder), "--quiet"]
    return [*argv, "--resume"] if (folder / "manifest.json").exists() else argv


async def _grpo(arm: Arm, seed: int, out: Path) -> None:
    """`python -m train.grpo`, as anyone would run it, but that it need not evaluate its start again."""
    folder = out / f"{arm.name}-{seed}"
    for harness in HARNESSES:
        shutil.copytree(
            out / "before" / harness, folder / "evals" / "000000" / harness, dirs_exist_ok=True
        )
    argv = ["--quiet", "--suite", PRACTICE, "--eval", HELD_OUT, "--harness", arm.harnesses]
    argv += ["--model", str(out / "start"), "--out", str(folder), "--seed", str(seed)]
    argv += ["--eval-harness", arm.guest] if arm.guest else []
    argv += [word for pair in RL.items() for word in pair]
    resume = ["--resume"] if (folder / "settings.json").exists() else []
    await _python("train.grpo", *argv, *resume)


async def _python(module: str, *argv: str) -> None:
    """Run a module on one thread. Raises SystemExit where it fails."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *argv,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        failed = await process.wait()
    finally:
        if process.returncode is None:  # another run failed, or this one is interrupted
            process.terminate()
            await process.wait()
    if failed:
        raise SystemExit(f"{module} ended with {process.returncode}; the same command goes on")


if __name__ == "__main__":
    main()
