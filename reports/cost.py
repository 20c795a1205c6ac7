"""What runs cost: tokens, calls, money where a price is known, and where the time went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pandas as pd

from reports.comparability import notes
from reports.load import Run, Runs
from reports.table import Column, Table
from rollout.errors import UsageError
from rollout.types import Episode, JsonObject, Record

__all__ = ["PRICES", "Price", "cost", "price_of", "read_prices", "time"]

PRICES = Path(__file__).with_name("prices.yaml")

PARTS = ("setup", "model", "tool", "harness", "grading")


class Price(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model's tokens cost, in USD per million."""

    model: str
    """A pattern as in a shell."""
    input: float
    output: float


def read_prices(path: Path = PRICES) -> tuple[Price, ...]:
    """The price table in a YAML file. Raises UsageError naming what is wrong with it."""
    try:
        return tuple(msgspec.yaml.decode(path.read_bytes(), type=list[Price]))
    except OSError as error:
        raise UsageError(f"--prices {path}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--prices {path}: {' '.join(str(error).split())}; "
            "it must be a list of {model: PATTERN, input: USD, output: USD} per million tokens"
        ) from error


def price_of(model: str, prices: Sequence[Price]) -> Price | None:
    """The first price whose pattern the model's name matches."""
    name = model.lower()
    return next((p for p in prices if fnmatchcase(name, p.model.lower())), None)


def cost(runs: Runs, prices: Sequence[Price]) -> Table:
    """One row a run: calls, tokens and money, in all and per attempt that passed."""
    return Table(
        name="cost",
        title="Tokens and money",
        frame=pd.DataFrame([_cost_row(run, prices) for run in runs]),
        columns={
            "run": Column("run"),
            "attempts": Column("attempts", "count"),
            "calls": Column("model calls", "count"),
            "tool_calls": Column("tool calls", "count"),
            "prompt_tokens": Column("prompt tokens", "tokens"),
            "completion_tokens": Column("completion tokens", "tokens"),
            "usd": Column(
                "cost", "money", "By the list price of the model; - where none is known."
            ),
            "tokens_per_pass": Column(
                "tokens per pass", "tokens", "All tokens over passed attempts."
            ),
            "usd_per_pass": Column("cost per pass", "money", "The cost over passed attempts."),
            "lost_tokens": Column(
                "lost tokens",
                "tokens",
                "Of tries that the infrastructure failed, not in the others.",
            ),
        },
        about=(
            "Sums over the last try of each attempt. Prices are list prices (prices.yaml, --prices) "
            "without discounts for cached prompts."
        ),
        notes=notes(runs),
    )


def time(runs: Runs) -> Table:
    """One row a run: the mean wall-clock time of an attempt, and its parts."""
    return Table(
        name="time",
        title="Where the time goes",
        frame=pd.DataFrame([_time_row(runs, run) for run in runs]),
        columns={
            "run": Column("run"),
            "seconds": Column("an attempt", "seconds", "Mean wall-clock time, all parts."),
            "model_seconds": Column("model", "seconds", "Waiting for at least one model call."),
            "tool_seconds": Column(
                "tools", "seconds", "Waiting for at least one of the task's tools."
            ),
            "harness_seconds": Column(
                "harness",
                "seconds",
                "What is left: the agent program, its shell commands included.",
            ),
            "setup_seconds": Column(
                "waiting and setup", "seconds", "World and sandbox, before it starts."
            ),
            "grading_seconds": Column("grading", "seconds"),
            "total": Column(
                "all attempts", "seconds", "Sum over attempts, which ran side by side."
            ),
            "lost": Column("lost", "seconds", "Sum over tries that the infrastructure failed."),
        },
        about="Means over the last try of each attempt. Times depend on the machine and its load.",
        notes=notes(runs),
    )


def _cost_row(run: Run, prices: Sequence[Price]) -> JsonObject:
    prompt = sum(episode.usage.prompt for episode in run.episodes)
    completion = sum(episode.usage.completion for episode in run.episodes)
    passed = sum(episode.outcome.value == "passed" for episode in run.episodes)
    price = price_of(_model(run), prices)
    usd = (prompt * price.input + completion * price.output) / 1e6 if price else math.nan
    return {
        "run": run.label,
        "attempts": len(run.episodes),
        "passed": passed,
        "calls": sum(episode.calls for episode in run.episodes),
        "tool_calls": sum(episode.tool_calls for episode in run.episodes),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "usd": usd,
        "tokens_per_pass": (prompt + completion) / passed if passed else math.nan,
        "usd_per_pass": usd / passed if passed else math.nan,
        "lost_tokens": sum(map(_tokens, run.earlier)),
    }


def _time_row(runs: Runs, run: Run) -> JsonObject:
    found = runs.episodes[runs.episodes["run"] == run.label]
    names = ["seconds", *(f"{part}_seconds" for part in PARTS)]
    means = {name: float(found[name].mean()) for name in names}
    return {
        "run": run.label,
        **means,
        "total": float(found["seconds"].sum()),
        "lost": sum(episode.timing.total for episode in run.earlier),
    }


def _tokens(episode: Episode) -> int:
    return episode.usage.prompt + episode.usage.completion


def _model(run: Run) -> str:
    """The model's name as it was asked for, without the organisation before it."""
    return str(run.manifest.model.get("model", "")).rpartition("/")[2]
