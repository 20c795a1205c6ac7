"""Training files from a run: `python -m train.export runs/NAME --for sft|rl --out FILE`.

Works through the run episode by episode, so memory is bounded by the largest one.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec

from rollout.errors import UsageError
from rollout.options import Parser
from rollout.store import EpisodeStore
from rollout.types import Episode, Outcome
from train.credit import CreditRules, assign, overlong_penalty, world_values
from train.files import writer
from train.lossy import Render, from_pretrained
from train.messages import canonical
from train.rows import RlRow, rl_rows
from train.samples import Calls, Report, Rules, build_samples
from train.sft_rows import SftReport, SftRow, sft_rows
from train.verify import Verified, verify_rl, verify_sft

__all__ = ["export_rl", "export_sft", "main"]

BAD, USAGE = 1, 2
"""Exit codes beside 0."""

Counts = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> None:
    """Export from the command line; exits with 0, 1 (verification failed) or 2 (wrong usage)."""
    try:
        sys.exit(_main(_parser().parse_args(argv)))
    except (UsageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE)


def _main(options: argparse.Namespace) -> int:
    with EpisodeStore.read(options.run) as store:
        counts = _sft(store, options) if options.purpose == "sft" else _rl(store, options)
        checked = _verified(store, options, counts) if options.verify else Verified()
    if options.json:
        print(msgspec.json.encode(counts).decode())
    else:
        _print(counts, options.out)
    for problem in checked.problems:
        print(problem, file=sys.stderr)
    return BAD if checked.problems else 0


def _verified(store: EpisodeStore, options: argparse.Namespace, counts: Counts) -> Verified:
    if options.purpose == "sft":
        found = verify_sft(options.out, store)
        counts["verified"] = {"rows": found.rows, "replies": found.calls}
    else:
        found = verify_rl(options.out, store, calls=counts["samples"]["kept"])
        counts["verified"] = {"rows": found.rows, "calls": found.calls, "tokens": found.tokens}
    return found


def _print(counts: Counts, out: Path) -> None:
    rows = counts.pop("rows")
    print(f"{out}: {rows} rows")
    for what, told in counts.items():
        pairs = told.items() if isinstance(told, dict) else [("", told)]
        if shown := ", ".join(f"{name} {n:,}".strip() for name, n in pairs if n):
            print(f"  {what}: {shown}")
    if not rows:
        print(f"no rows: {_why_empty(counts)}", file=sys.stderr)


def _why_empty(counts: Counts) -> str:
    """What an empty file most likely comes from, and the remedy."""
    if "credit" not in counts:
        return "no episode passed; --failed takes the others too"
    if counts["credit"].get("too_small"):
        return "no task has two graded attempts, which an advantage needs; run with --attempts 2 or more"
    return "nothing was left of the episodes; the counts say why"


def export_sft(
    store: EpisodeStore,
    out: Path,
    *,
    calls: Calls = "all",
    failed: bool = False,
    per_task: int = 0,
) -> tuple[SftReport, Counts]:
    """Write the conversations of passed episodes, or with `failed` of all.

    `per_task` is the most episodes a task (0: no limit). A conversation that an earlier episode of the
    task has already, call ids apart, is left out; an episode with nothing new does not count towards the
    limit. Memory grows by about 100 bytes a row.
    """
    report, counts = SftReport(), Counter(episodes=0, not_passed=0, duplicates=0)
    seen: set[bytes] = set()
    taken: Counter[str] = Counter()
    with writer(out, SftRow) as file:
        for episode in _latest(store):
            if not failed and episode.outcome is not Outcome.PASSED:
                counts["not_passed"] += 1
                continue
            if per_task and taken[episode.task_id] >= per_task:
                continue
            rows, told = sft_rows(episode, store.trace(episode), calls)
            new = [row for row in rows if not _known(row, seen)]
            report.add(told)
            counts["duplicates"] += len(rows) - len(new)
            counts["episodes"] += bool(new)
            taken[episode.task_id] += bool(new)
            for row in new:
                file.add(row)
    return report, {"rows": file.rows, **counts}


def export_rl(
    store: EpisodeStore,
    out: Path,
    *,
    rules: Rules,
    credit: CreditRules,
    gamma: float = 1.0,
    score_world: bool = False,
    soft_overlong: tuple[int, int] | None = None,
    tokenizer: Render | None = None,
) -> tuple[Report, Counts]:
    """Write samples with their credit.

    `score_world` gives interrupted episodes the grade of their world (`world_values`). `soft_overlong` is
    limit and buffer of `overlong_penalty`, for the tokens that an episode sampled. Raises MissingTokenIds
    for an episode without token ids, unless there is a `tokenizer`.
    """
    episodes = list(_latest(store))
    penalties = {}
    if soft_overlong is not None:
        penalties = {
            one.id: overlong_penalty(one.usage.completion, *soft_overlong) for one in episodes
        }
    values = world_values(episodes) if score_world else {}
    credits, told = assign(episodes, credit, values=values, penalties=penalties)
    report = Report()
    with writer(out, RlRow) as file:
        for episode in episodes:
            if (one := credits.get(episode.id)) is None or not one.trained:
                continue
            samples, found = build_samples(
                episode, store.trace(episode), rules, tokenizer=tokenizer
            )
            report.add(found)
            for row in rl_rows(samples, one, gamma):
                file.add(row)
    return report, {"rows": file.rows, "credit": _fields(told)}


def _latest(store: EpisodeStore) -> Iterator[Episode]:
    """The tries that count, in the order in which they ended."""
    wanted = {episode.id for episode in store.latest().values()}
    return (episode for episode in store.episodes() if episode.id in wanted)


def _known(row: SftRow, seen: set[bytes]) -> bool:
    digest = hashlib.sha256(f"{row.task_id}\0{row.tools}".encode())
    for said in (*map(canonical, row.messages), *(url.encode() for url in row.images)):
        digest.update(said)
    key = digest.digest()[:16]
    known = key in seen
    seen.add(key)
    return known


def _sft(store: EpisodeStore, options: argparse.Namespace) -> Counts:
    report, counts = export_sft(
        store, options.out, calls=options.calls, failed=options.failed, per_task=options.per_task
    )
    rows = counts.pop("rows")
    return {"rows": rows, "episodes": counts, "calls": _fields(report)}


def _rl(store: EpisodeStore, options: argparse.Namespace) -> Counts:
    told = vars(options)
    report, counts = export_rl(
        store,
        options.out,
        rules=Rules(logprobs=not options.no_logprobs, **_chosen(told, Rules, "logprobs")),
        credit=CreditRules(**_chosen(told, CreditRules)),
        gamma=options.gamma,
        score_world=options.score_world,
        soft_overlong=options.soft_overlong,
        tokenizer=from_pretrained(options.lossy_tokenizer) if options.lossy_tokenizer else None,
    )
    return {**counts, "samples": {**_fields(report), "kept": report.kept}}


def _chosen(told: dict[str, Any], rules: type[Any], *without: str) -> dict[str, Any]:
    return {name: told[name] for name in rules.__struct_fields__ if name not in without}


def _fields(report: Any) -> dict[str, int]:
    return dict(msgspec.to_builtins(report))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m train.export", description="Training files from a run.")
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--for", dest="purpose", required=True, choices=["sft", "rl"])
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="ends in .jsonl or .parquet"
    )
    parser.add_argument(
        "--calls",
        choices=get_args(Calls),
        default="all",
        help="all; all but side calls (titles, probes); the main agent's own; the longest chain's",
    )
    parser.add_argument("--verify", action="store_true", help="check the file against the run")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    _add_sft(parser.add_argument_group("sft"))
    _add_samples(parser.add_argument_group("rl: samples"))
    _add_credit(parser.add_argument_group("rl: credit"))
    return parser


def _add_sft(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--failed", action="store_true", help="failed episodes too")
    group.add_argument(
        "--per-task", type=_count, default=0, metavar="N", help="episodes a task at most (no limit)"
    )


def _add_samples(group: argparse._ArgumentGroup) -> None:
    _choice(group, Rules, "truncated", "replies that were cut")
    group.add_argument("--no-logprobs", action="store_true", help="take calls without logprobs")
    for name in ("max_tokens", "max_response"):
        option = f"--{name.replace('_', '-')}"
        group.add_argument(
            option, type=_count, default=0, metavar="N", help="of a sample (no limit)"
        )
    _choice(group, Rules, "overlong", "what is longer than that")
    group.add_argument(
        "--lossy-tokenizer",
        metavar="PATH",
        help="where the server gave no token ids: make some up from the text (needs transformers)",
    )


def _add_credit(group: argparse._ArgumentGroup) -> None:
    _choice(group, CreditRules, "estimator", "group advantage")
    _choice(group, CreditRules, "reward", "the grade's score, or 1 and 0")
    _choice(group, CreditRules, "unclean", "episodes without a grade")
    _choice(group, CreditRules, "timeouts", "episodes that ran out of time: reward 0, or dropped")
    _choice(group, CreditRules, "zero_variance", "groups of equal rewards")
    group.add_argument("--gamma", type=_gamma, default=1.0, metavar="G", help="of step returns (1)")
    group.add_argument(
        "--score-world",
        action="store_true",
        help="interrupted episodes that were graded count with that grade (biased low)",
    )
    group.add_argument(
        "--soft-overlong",
        type=_limit_and_buffer,
        metavar="LIMIT:BUFFER",
        help="DAPO's penalty on an episode's sampled tokens",
    )


def _choice(group: argparse._ArgumentGroup, rules: type[Any], name: str, what: str) -> None:
    """An option for a field of `rules`: its choices and its default are the field's."""
    default = getattr(rules(), name)
    group.add_argument(
        f"--{name.replace('_', '-')}",
        choices=get_args(get_type_hints(rules)[name]),
        default=default,
        help=f"{what} ({default})",
    )


def _count(text: str) -> int:
    if int(text) < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, but is {text}")
    return int(text)


def _gamma(text: str) -> float:
    if not 0 < float(text) <= 1:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1, not {text}")
    return float(text)


def _limit_and_buffer(text: str) -> tuple[int, int]:
    limit, _, buffer = text.partition(":")
    pair = int(limit), int(buffer)
    overlong_penalty(0, *pair)
    return pair


if __name__ == "__main__":
    main()
