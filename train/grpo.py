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
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from rollout.errors import UsageError
from rollout.options import bounded, positive
from rollout.processes import cancel_on_signals
from train.credit import CreditRules, Estimator
from train.mix import format_mix, parse_mix, with_eval_only
from train.options import USAGE, TrainerParser, ending
from train.packages import need_torch

if TYPE_CHECKING:
    from train.local.run import LocalRun
    from train.local.trainer import Watcher

__all__ = ["main"]

LOCAL = (
    *("model", "suite", "steps", "eval_every", "max_tokens", "concurrency", "sandbox"),
    *("engine", "engine_memory"),
)
"""Options that are fields of `LocalRun`."""


def main(argv: Sequence[str] | None = None) -> None:
    """Train from the command line; exits with 0, 1 (the infrastructure is gone), 2 or 130."""
    with ending("the same command with --resume goes on"):
        options = _parser().parse_args(argv)
        _check_evaluation(options)
        if options.trainer == "verl":
            sys.exit(_verl(options))
        _locally(options)


def _verl(options: argparse.Namespace) -> int:
    """Hand over to verl's own trainer, or with --check only say what would be wrong, or be started."""
    from train.verl import launch as verl_launch

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
    for name in ("suite", "model"):
        if not getattr(options, name):
            raise UsageError(f"--{name} is missing: the local trainer needs it")
    if options.overrides:
        raise UsageError(f"{options.overrides[0]}: fields of verl's config need --trainer verl")
    if options.recipe:
        raise UsageError(f"--recipe {options.recipe}: needs --trainer verl")
    if options.engine_memory and options.engine != "vllm":
        raise UsageError("--engine-memory: needs --engine vllm")
    need_torch("the local trainer")
    from train.local.progress import progress

    run = _local_run(options)
    if options.check:
        print("\n".join(asyncio.run(run.check())))
        return

    async def train(watcher: Watcher) -> Path:
        cancel_on_signals()
        return await run.train(resume=options.resume, watcher=watcher)

    with progress(run.steps, quiet=options.quiet) as watcher:
        checkpoint = asyncio.run(train(watcher))
    print(f"in {checkpoint}")


def _check_evaluation(options: argparse.Namespace) -> None:
    """Nothing is held out unless somebody says what. Raises UsageError."""
    if options.eval or any(word.startswith("anyharness.val_suite=") for word in options.overrides):
        return
    for name in ("eval_every", "eval_harness"):
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')}: needs --eval SPEC, the held-out tasks")


def _local_run(options: argparse.Namespace) -> LocalRun:
    """What the options ask for; what they leave open is as `LocalRun` and `GrpoRules` have it."""
    from train.local.rules import GrpoRules
    from train.local.run import LocalRun

    given = {name: value for name, value in vars(options).items() if value is not None}
    credit = CreditRules(estimator=options.estimator) if options.estimator else CreditRules()
    mix = parse_mix(options.harness or "react", options.tools)
    if options.eval_harness:
        mix = with_eval_only(mix, parse_mix(options.eval_harness, options.tools))
    return LocalRun(
        folder=options.out or Path("runs") / "grpo",
        mix=mix,
        rules=GrpoRules(credit=credit, **_of(given, GrpoRules.__struct_fields__)),
        evaluation=options.eval or "",
        **_of(given, LOCAL),
    )


def _of(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _parser() -> argparse.ArgumentParser:
    parser = TrainerParser(
        prog="python -m train.grpo",
        description="Train a policy with GRPO on any suite and harness.",
    )
    parser.add_argument("--suite", metavar="SPEC", help='NAME, or "NAME --option ..." of its own')
    parser.add_argument("--model", metavar="PATH", help="the initial checkpoint")
    parser.add_argument(
        "--harness",
        metavar="MIX",
        help="NAME[/TOOLS][:WEIGHT], several with commas (default: react; verl has none)",
    )
    parser.add_argument("--tools", default="", help="surface of harnesses that name none")
    parser.add_argument(
        "--trainer",
        choices=["local", "verl"],
        default="local",
        help="local: one process, small models; verl: many GPUs (default: local)",
    )
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
    group.add_argument("--steps", type=count, metavar="N", help="updates (100)")
    group.add_argument("--batch", type=count, metavar="N", help="tasks a step (8)")
    group.add_argument(
        "--group", type=bounded(int, 2), metavar="N", help="attempts a task, 2 or more (8)"
    )
    group.add_argument("--learning-rate", type=number, metavar="X", help="(1e-6)")
    group.add_argument("--warmup", type=bounded(int, 0), metavar="N", help="steps (0)")
    group.add_argument("--epochs", type=count, metavar="N", help="passes a step (1)")
    group.add_argument("--mini-batches", type=count, metavar="N", help="updates a pass (1)")
    group.add_argument("--clip-low", type=number, metavar="X", help="(0.2)")
    group.add_argument("--clip-high", type=number, metavar="X", help="(0.28)")
    group.add_argument("--kl", type=bounded(float, 0), metavar="X", help="weight of KL (0)")
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
        help="of the GPU's, for vLLM (0.4)",
    )
    group.add_argument("--sandbox", metavar="KIND", help="(auto)")
    group.add_argument("--seed", type=int, metavar="N", help="(0)")


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, not {text}")
    return value


def _aggregations() -> Sequence[str]:
    """verl's and ours. Listed here because `train.local.loss` needs torch."""
    return ("episode-mean", "token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean")


if __name__ == "__main__":
    main()
