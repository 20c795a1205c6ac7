"""Train a policy with GRPO on any suite, in any harness: `python -m train.grpo --suite ... --model PATH`.

    python -m train.grpo --suite claweval --harness react --model PATH --out runs/grpo
    python -m train.grpo --suite "office_drills --split train --count 2000" --harness react,react/mcp \\
        --eval "office_drills --count 50" --eval-every 10 --model PATH --out runs/mixed
    python -m train.grpo ... --trainer verl --recipe claw --check

What can be evaluated can be trained, with no other code. The local trainer holds the model in this
process (torch and transformers, a CPU or one GPU); verl trains large ones on many.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from rollout.errors import RolloutError, UsageError
from rollout.options import Parser, positive
from rollout.processes import cancel_on_signals
from rollout.store import lock_folder
from rollout.types import JsonObject
from suites.options import Forced
from train.credit import CreditRules, Estimator
from train.mix import HarnessSpec, format_mix, parse_mix, with_eval_only
from train.runs import ReadyHarness, Source
from train.settings import changes, note, noted

if TYPE_CHECKING:
    from train.engine import PolicyEngine
    from train.local_trainer import GrpoRules, Watcher

__all__ = ["main", "ready_harnesses", "train_locally"]

SETTINGS = "settings.json"
STEPS = 100
ENGINE_MEMORY = 0.4
"""vLLM's share of the GPU: the trainer's weights and optimizer stay beside it."""
FAILED, USAGE, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0."""


def main(argv: Sequence[str] | None = None) -> None:
    """Train from the command line; exits with 0, 1 (the infrastructure is gone), 2 or 130."""
    try:
        options = _parser().parse_args(argv)
        if options.trainer == "verl":
            sys.exit(_verl(options))
        _locally(options)
    except (RolloutError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
    except (KeyboardInterrupt, asyncio.CancelledError):
        print("interrupted; the same command with --resume goes on", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _verl(options: argparse.Namespace) -> int:
    """Hand over to verl's own trainer, or with --check only say what would be wrong, or be started."""
    from train import verl_launch

    recipe = options.recipe or verl_launch.DEFAULT
    given = dict(vars(options))
    if options.harness:
        mix = parse_mix(options.harness, options.tools)
        given["harness"] = format_mix(mix)
        if options.eval_harness:
            others = parse_mix(options.eval_harness, options.tools)
            given["eval_harness"] = format_mix(with_eval_only(mix, others))
    told = verl_launch.overrides(given, options.overrides)
    if not options.check:
        verl_launch.launch(recipe, told)
    wrong = verl_launch.check(recipe, told)
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(verl_launch.plan(recipe, told))
    return USAGE if wrong else 0


def _locally(options: argparse.Namespace) -> None:
    from train.local_progress import progress
    from train.local_trainer import GrpoRules

    for name in ("suite", "model"):
        if not getattr(options, name):
            raise UsageError(f"--{name} is missing: the local trainer needs it")
    if options.overrides:
        raise UsageError(f"{options.overrides[0]}: fields of verl's config need --trainer verl")
    for name in ("eval_every", "eval_harness"):
        if getattr(options, name) and not options.eval:
            raise UsageError(f"--{name.replace('_', '-')}: needs --eval SPEC, the held-out tasks")
    if options.recipe:
        raise UsageError(f"--recipe {options.recipe}: needs --trainer verl")
    if options.engine_memory and options.engine != "vllm":
        raise UsageError("--engine-memory: needs --engine vllm")
    given = {name: value for name, value in vars(options).items() if value is not None}
    credit = CreditRules(estimator=options.estimator) if options.estimator else CreditRules()
    rules = GrpoRules(credit=credit, **_of(given, GrpoRules.__struct_fields__))
    mix = parse_mix(options.harness or "react", options.tools)
    if options.eval_harness:
        mix = with_eval_only(mix, parse_mix(options.eval_harness, options.tools))
    if options.check:
        asyncio.run(_check(options, mix))
        return
    steps = given.get("steps", STEPS)
    how = _of(given, ("eval_every", "concurrency", "max_tokens", "sandbox", "resume"))
    how |= _of(given, ("engine", "engine_memory"))

    async def train(watcher: Watcher) -> None:
        cancel_on_signals()
        await train_locally(
            options.model,
            options.out or Path("runs") / "grpo",
            rules,
            mix,
            suite=options.suite,
            evaluation=options.eval or "",
            steps=steps,
            watcher=watcher,
            **how,
        )

    with progress(steps, quiet=options.quiet) as watcher:
        asyncio.run(train(watcher))


def _of(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


async def _check(options: argparse.Namespace, mix: Sequence[HarnessSpec]) -> None:
    """Open all that training would."""
    from train.local_engine import load_model

    start = _engine(options.engine or "torch", options.engine_memory or ENGINE_MEMORY)
    engine = start(*load_model(options.model))
    forced: Forced = {"sandbox": options.sandbox} if options.sandbox else {}
    opened = ready_harnesses(mix, options.suite, options.eval or "", _policy(engine), forced)
    try:
        async with opened as harnesses:
            for one in harnesses:
                told = f"{len(one.tasks)} tasks, {len(one.held_out)} held out"
                print(f"{one.spec.name}: {told}")
    finally:
        engine.close()


async def train_locally(
    model: str,
    folder: Path,
    rules: GrpoRules,
    mix: Sequence[HarnessSpec],
    *,
    suite: str,
    evaluation: str = "",
    steps: int,
    eval_every: int = 0,
    concurrency: int = 32,
    max_tokens: int = 1024,
    sandbox: str = "auto",
    resume: bool = False,
    engine: str = "torch",
    engine_memory: float = ENGINE_MEMORY,
    watcher: Watcher | None = None,
) -> Path:
    """Train a checkpoint, or go on with the training in `folder`; the last checkpoint.

    `engine` is what samples, "torch" or "vllm", the latter with `engine_memory` as its share of the GPU.
    Raises UsageError for what can't work, and where `folder` holds a training with other settings, or
    one that another process is at.
    """
    from train.local_checkpoint import Checkpoints
    from train.local_engine import load_model
    from train.local_trainer import Trainer, Watcher

    start = _engine(engine, engine_memory)
    settings = {
        "model": model,
        "suite": suite,
        "evaluation": evaluation,
        "harnesses": [msgspec.to_builtins(one) for one in mix],
        "max_tokens": max_tokens,
        # The same seed draws other tokens in another engine: that would be another run.
        "engine": engine,
        **msgspec.to_builtins(rules),
    }
    forced: Forced = {
        "temperature": rules.temperature,
        "max_tokens": max_tokens,
        "sandbox": sandbox,
    }
    with _locked(folder):
        _compare(folder / SETTINGS, settings, resume)
        checkpoint = Checkpoints(folder / "checkpoints").latest()
        loaded, tokenizer, optimizer = _load(model, checkpoint, rules)
        running = start(loaded, tokenizer, slots=concurrency)
        try:
            opened = ready_harnesses(mix, suite, evaluation, _policy(running), forced)
            async with opened as harnesses:
                note(folder / SETTINGS, settings)
                trainer = Trainer(
                    running,
                    optimizer,
                    rules,
                    folder,
                    step=int(checkpoint.name) if checkpoint else 0,
                    reference=load_model(model)[0] if rules.kl else None,
                    concurrency=concurrency,
                    watcher=watcher or Watcher(),
                )
                await trainer.train(harnesses, steps, eval_every=eval_every)
        finally:
            running.close()
    return trainer.checkpoints.latest() or Path(model)


def _engine(kind: str, memory: float) -> Callable[..., PolicyEngine]:
    """What starts an engine for a model and its tokenizer. Raises UsageError without its package."""
    if kind == "torch":
        from train.local_engine import LocalEngine

        return LocalEngine
    from train.vllm_engine import VLLMEngine, import_vllm

    import_vllm()
    return partial(VLLMEngine, memory=memory)


def _policy(engine: PolicyEngine) -> Any:
    from train.policy import PolicyUpstream

    return PolicyUpstream(
        engine, engine.tokenizer, model="policy", context_window=engine.context_window
    )


@asynccontextmanager
async def ready_harnesses(
    mix: Sequence[HarnessSpec], suite: str, evaluation: str, policy: Any, forced: Forced
) -> AsyncIterator[list[ReadyHarness]]:
    """Every harness with the tasks to train on and those that are held out. Raises UsageError."""
    async with AsyncExitStack() as stack:
        ready = []
        for spec in mix:
            options: Forced = {**forced, **spec.options}
            source = Source.parse(suite, forced=options)
            setup = await stack.enter_async_context(source.open(policy))
            held_out = Source.parse(evaluation, forced=options).tasks(setup) if evaluation else {}
            ready.append(
                ReadyHarness(spec, setup, source.tasks(setup), held_out=list(held_out.values()))
            )
        yield ready


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two trainers in one folder would spoil each other's work. Raises UsageError for the second."""
    lock = lock_folder(folder)
    try:
        yield
    finally:
        os.close(lock)


def _compare(path: Path, settings: JsonObject, resume: bool) -> None:
    """See that what is to be trained is what the folder holds, if anything. Raises UsageError."""
    if (old := noted(path)) is None:
        return
    if not resume:
        raise UsageError(f"{path.parent} holds a training: add --resume, or choose another --out")
    if changed := changes(old, settings):
        told = ", ".join(f"{name} was {old.get(name)!r}" for name in changed[:5])
        raise UsageError(f"{path.parent}: can't be resumed with other settings: {told}")


def _load(model: str, checkpoint: Path | None, rules: GrpoRules) -> tuple[Any, Any, Any]:
    """Model, tokenizer and optimizer, from a checkpoint where there is one. Raises UsageError."""
    import torch

    from train.local_checkpoint import restore
    from train.local_engine import load_model

    try:
        loaded, tokenizer = load_model(str(checkpoint or model))
        optimizer = torch.optim.AdamW(
            loaded.parameters(),
            lr=rules.learning_rate,
            weight_decay=rules.weight_decay,
            foreach=False,
        )
        if checkpoint is not None:
            restore(optimizer, checkpoint)
    except UsageError as error:
        if checkpoint is None:
            raise
        raise UsageError(f"{error}; remove {checkpoint} to resume from the one before") from error
    return loaded, tokenizer, optimizer


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m train.grpo",
        description="Train a policy with GRPO on any suite and harness.",
    )
    parser.add_argument("--suite", metavar="SPEC", help='NAME, or "NAME --option ..." of its own')
    parser.add_argument("--model", metavar="PATH", help="the initial checkpoint")
    parser.add_argument(
        "--harness",
        metavar="MIX",
        help="NAME[/TOOLS][:WEIGHT], several with commas (default: react)",
    )
    parser.add_argument("--tools", default="", help="surface of harnesses that name none")
    parser.add_argument("--trainer", choices=["local", "verl"], default="local")
    parser.add_argument("--check", action="store_true", help="check everything, train nothing")
    parser.add_argument("--recipe", default="", metavar="NAME", help="verl: a run of the paper")
    parser.add_argument(
        "overrides", nargs="*", metavar="FIELD=VALUE", help="verl: of its config, as hydra has them"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where training is kept (runs/grpo)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the training in --out")
    parser.add_argument("--eval", metavar="SPEC", help="suite of held-out tasks")
    parser.add_argument("--eval-harness", metavar="NAMES", help="more harnesses to evaluate in")
    parser.add_argument(
        "--eval-every",
        type=positive(int),
        metavar="N",
        help="steps (default: before training and after it)",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress display")
    _how(parser.add_argument_group("how it is trained (in brackets: the local trainer's defaults)"))
    return parser


def _how(group: argparse._ArgumentGroup) -> None:
    """Without defaults: those are where the trainer is, and verl's are in its recipe."""
    count, number = positive(int), positive(float)
    group.add_argument("--steps", type=count, metavar="N", help=f"updates ({STEPS})")
    group.add_argument("--batch", type=count, metavar="N", help="tasks a step (8)")
    group.add_argument("--group", type=count, metavar="N", help="attempts a task (8)")
    group.add_argument("--learning-rate", type=number, metavar="X", help="(1e-6)")
    group.add_argument("--warmup", type=int, metavar="N", help="steps (0)")
    group.add_argument("--epochs", type=count, metavar="N", help="passes a step (1)")
    group.add_argument("--mini-batches", type=count, metavar="N", help="updates a pass (1)")
    group.add_argument("--clip-low", type=number, metavar="X", help="(0.2)")
    group.add_argument("--clip-high", type=number, metavar="X", help="(0.28)")
    group.add_argument("--kl", type=float, metavar="X", help="weight of KL (0)")
    group.add_argument(
        "--aggregation", choices=_aggregations(), help="of token losses (episode-mean)"
    )
    group.add_argument("--estimator", choices=get_args(Estimator), help="of advantages (grpo)")
    group.add_argument("--temperature", type=number, metavar="T", help="(1)")
    group.add_argument("--max-tokens", type=count, metavar="N", help="of one reply (1024)")
    group.add_argument("--concurrency", type=count, metavar="N", help="episodes at once (32)")
    group.add_argument("--engine", choices=["torch", "vllm"], help="what samples (torch)")
    group.add_argument(
        "--engine-memory",
        type=_share,
        metavar="SHARE",
        help=f"of the GPU's, for vLLM ({ENGINE_MEMORY})",
    )
    group.add_argument("--sandbox", metavar="KIND", help="(auto)")
    group.add_argument("--seed", type=int, metavar="N", help="(0)")


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, not {text}")
    return value


def _aggregations() -> Sequence[str]:
    """verl's and ours. Listed here because `train.local_loss` needs torch."""
    return ("episode-mean", "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean")


if __name__ == "__main__":
    main()
