"""Distil a teacher: `python -m train.sft --suite S --harness H --teacher T --model PATH --out DIR`.

The teacher attempts each task through the harness, what passed is kept, and the model learns to say what
the teacher said: its replies token for token under the model's own chat template, end of turn included,
and nothing else. `--show-mask` prints an episode with the trained tokens marked, and trains nothing.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.text import Text

from rollout.errors import UsageError
from rollout.gateway.upstream import Upstream
from rollout.options import bounded, positive
from rollout.processes import cancel_on_signals
from rollout.types import Call, Episode, Outcome, Record, Trace
from suites.command.options import Forced
from train.batches import epoch_batch
from train.lossy import Render, render_with
from train.mix import HarnessSpec, parse_mix
from train.options import TrainerParser, ending
from train.packages import need_torch
from train.runs import Attempts, Source, attempts
from train.samples import Rules, Sample, build_samples
from train.settings import changes, note, noted

__all__ = ["SftRules", "distil", "main", "masked", "taught", "train_on"]

SETTINGS = "settings.json"


class SftRules(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How long, and how fast."""

    epochs: float = 2.0
    batch: int = 32
    """Rows an update."""
    learning_rate: float = 1e-5
    warmup: int = 20
    """Updates in which the learning rate rises; afterwards it falls to a tenth, in a straight line."""
    weight_decay: float = 0.01
    max_norm: float = 1.0
    seed: int = 0


def main(argv: Sequence[str] | None = None) -> None:
    """Distil from the command line; exits with 0, 1, 2 or 130."""
    with ending("the same command uses the episodes that there are"):
        _main(_parser().parse_args(argv))


def _main(options: argparse.Namespace) -> None:
    trained = options.out / "model"
    if trained.exists() and not options.show_mask:
        raise UsageError(f"{trained} is there already: remove it, or choose another --out")
    need_torch("train.sft")
    from train.local.checkpoint import save_model
    from train.local.engine import load_model

    model, tokenizer = load_model(options.model)
    screen = Console(stderr=True)
    episodes = asyncio.run(_teach(options))
    rows = taught(episodes, render_with(tokenizer), end=tokenizer.eos_token_id)
    passed = sum(episode.outcome is Outcome.PASSED for episode, _ in episodes)
    screen.print(f"{passed} of {len(episodes)} episodes passed: {len(rows)} rows")
    if options.show_mask:
        Console().print(masked(rows[0], tokenizer))
        return
    rules = SftRules(
        epochs=options.epochs,
        batch=options.batch,
        learning_rate=options.learning_rate,
        warmup=options.warmup,
        seed=options.seed,
    )
    for update, loss in train_on(model, rows, rules):
        if update % 10 == 0:
            screen.print(f"update {update}: loss {loss:.4f}")
    save_model(model, tokenizer, trained)
    screen.print(f"in {trained}")


async def _teach(options: argparse.Namespace) -> Attempts:
    cancel_on_signals()
    return await distil(
        options.suite,
        parse_mix(options.harness, options.tools),
        options.out / "teacher",
        teacher=options.teacher,
        base_url=options.base_url,
        n=options.attempts,
        concurrency=options.concurrency,
    )


async def distil(
    suite: str,
    mix: Sequence[HarnessSpec],
    folder: Path,
    *,
    teacher: str = "reference",
    base_url: str = "",
    policy: Upstream | None = None,
    n: int = 3,
    concurrency: int = 16,
) -> Attempts:
    """n attempts of the teacher at each task in each harness; what `folder` has is not run again.

    Raises UsageError where that is of another suite or teacher.
    """
    told = {"suite": suite, "teacher": policy.label if policy else teacher}
    old = noted(folder / SETTINGS)
    if old is not None and (changed := changes(old, told)):
        was = ", ".join(f"{name} was {old.get(name)!r}" for name in changed)
        raise UsageError(f"{folder} holds other episodes ({was}): choose another folder")
    episodes: Attempts = []
    for spec in mix:
        forced: Forced = {**spec.options, "model": teacher, "base_url": base_url}
        source = Source.parse(suite, forced=forced)
        async with source.open(policy) as setup:
            harness, place = source.ready(spec, setup), folder / spec.folder
            note(folder / SETTINGS, told)
            tasks = list(harness.tasks.values())
            episodes += await attempts(harness, tasks, n, place, concurrency=concurrency, seed=0)
    return episodes


def taught(episodes: Attempts, render: Render, *, end: int) -> list[Sample]:
    """Rows of the episodes that passed. Raises UsageError where none did."""
    passed = [pair for pair in episodes if pair[0].outcome is Outcome.PASSED]
    rows = [row for episode, trace in passed for row in _rows(episode, trace, render, end)]
    if not rows:
        raise UsageError(
            f"the teacher passed none of its {len(episodes)} attempts: nothing to learn"
        )
    return rows


def _rows(episode: Episode, trace: Trace, render: Render, end: int) -> Iterator[Sample]:
    """As text: the teacher's token ids, where there are any, are of its own tokenizer."""
    calls = tuple(map(_without_ids, trace.calls))
    samples, _ = build_samples(
        episode,
        msgspec.structs.replace(trace, calls=calls),
        Rules(logprobs=False),
        tokenizer=render,
    )
    for sample in samples:
        mask = sample.response_mask.copy()
        for step in sample.steps:
            _stop_at(mask[step.start : step.stop], sample.response_ids[step.start : step.stop], end)
        yield msgspec.structs.replace(sample, response_mask=mask)


def _without_ids(call: Call) -> Call:
    return msgspec.structs.replace(call, prompt_ids=b"", response_ids=b"", logprobs=b"")


def _stop_at(mask: Any, ids: Any, end: int) -> None:
    """What a template puts behind the end of a turn is never sampled."""
    ends = np.flatnonzero(ids == end)
    if len(ends):
        mask[ends[-1] + 1 :] = False


def train_on(model: Any, rows: Sequence[Sample], rules: SftRules) -> Iterator[tuple[int, float]]:
    """Train; number and loss (nats a token) of each update, as it is made.

    Raises UsageError where the rules lead it astray.
    """
    import torch

    from train.local.batch import collate, logprobs, micro_batches

    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=rules.learning_rate,
        weight_decay=rules.weight_decay,
        betas=(0.9, 0.95),
        foreach=False,
    )
    updates = max(1, round(rules.epochs * len(rows) / rules.batch))
    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = rules.learning_rate * _pace(update, updates, rules.warmup)
        batch = [rows[i] for i in epoch_batch(len(rows), rules.batch, update, f"{rules.seed}/")]
        tokens = max(1, sum(int(np.count_nonzero(row.response_mask)) for row in batch))
        total = 0.0
        for part in micro_batches(batch):
            told, _ = logprobs(model, collate([batch[i] for i in part], model.device))
            loss = -told.sum() / tokens
            loss.backward()
            total += float(loss.detach())
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), rules.max_norm)
        if not torch.isfinite(norm):
            raise UsageError(
                f"update {update}: the gradient is not finite; choose a lower --learning-rate"
            )
        optimizer.step()
        optimizer.zero_grad()
        yield update, total


def _pace(update: int, updates: int, warmup: int) -> float:
    rising = (update + 1) / max(1, warmup)
    return min(1.0, rising) * (1 - 0.9 * update / updates)


def masked(row: Sample, tokenizer: Any) -> Text:
    """A row for people: what is trained in bold green, each token closed by a thin bar."""
    text = Text(tokenizer.decode(row.prompt_ids.tolist()), style="dim")
    for token, trained in zip(row.response_ids.tolist(), row.response_mask.tolist(), strict=True):
        said = tokenizer.decode([token])
        text.append(f"{said}\u2502" if trained else said, "bold green" if trained else "dim")
    return text


def _parser() -> argparse.ArgumentParser:
    parser = TrainerParser(prog="python -m train.sft", description="Distil a teacher into a model.")
    parser.add_argument(
        "--suite", required=True, metavar="SPEC", help='NAME, or "NAME --option ..."'
    )
    parser.add_argument("--harness", default="react", metavar="MIX", help="one, or several (react)")
    parser.add_argument("--tools", default="", help="surface of harnesses that name none")
    parser.add_argument(
        "--teacher", default="reference", metavar="SPEC", help="reference | openai:NAME | vllm:PATH"
    )
    parser.add_argument("--base-url", default="", metavar="URL", help="of the teacher's server")
    parser.add_argument("--model", required=True, metavar="PATH", help="who learns: a checkpoint")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--show-mask", action="store_true", help="print what would be trained")
    count, number = positive(int), positive(float)
    parser.add_argument("--attempts", type=count, default=3, metavar="N", help="a task (3)")
    parser.add_argument("--concurrency", type=count, default=16, metavar="N", help="(16)")
    parser.add_argument("--epochs", type=number, default=2.0, metavar="X", help="(2)")
    parser.add_argument("--batch", type=count, default=32, metavar="N", help="rows (32)")
    parser.add_argument("--learning-rate", type=number, default=1e-5, metavar="X", help="(1e-5)")
    parser.add_argument(
        "--warmup", type=bounded(int, 0), default=20, metavar="N", help="updates (20)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    return parser


if __name__ == "__main__":
    main()
