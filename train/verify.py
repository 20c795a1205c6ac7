"""Exported rows against the run that they came from, by rules that the exporter does not share.

Nothing here builds a tree or merges: each trained token is looked up in the record of its call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import msgspec
import numpy as np

from rollout.store import EpisodeStore
from rollout.types import Call, JsonObject
from train.files import read_rows
from train.messages import canonical, conversation
from train.sft_rows import IMAGE, plain

__all__ = ["Verified", "verify_rl", "verify_sft"]


class Verified(msgspec.Struct):
    """What was looked at, and what is wrong with it."""

    rows: int = 0
    calls: int = 0
    tokens: int = 0
    problems: list[str] = []
    """One line each, the first twenty."""


SHOWN = 20


def verify_rl(path: Path, store: EpisodeStore, *, calls: int | None = None) -> Verified:
    """Every trained token was sampled by a call, after that call's very prompt, and is trained once.

    `calls` is how many must be there, where that is known.
    """
    found = Verified()
    episodes = {episode.id: episode for episode in store.episodes()}
    for name, rows in _by_episode(path):
        recorded = {call.index: call for call in store.trace(episodes[name]).calls}
        shares = 0.0
        trained: Counter[int] = Counter()
        for row in rows:
            found.rows += 1
            shares += row["loss_weight"]
            where = f"episode {name!r}, branch {row['branch']}"
            _note(found, (f"{where}: {problem}" for problem in _wrong_tokens(row, recorded)))
            trained.update(row["step_calls"])
            found.tokens += sum(row["response_mask"])
        found.calls += len(trained)
        again = [index for index, count in trained.items() if count > 1]
        _note(found, (f"episode {name!r}: call {index} is there twice" for index in again))
        if not (abs(shares - 1) < 1e-6 or shares == 0):
            _note(found, [f"episode {name!r}: its loss weights sum to {shares}, not 1"])
    if calls is not None and calls != found.calls:
        _note(found, [f"{path} has {found.calls} calls, not {calls}"])
    return found


def verify_sft(path: Path, store: EpisodeStore) -> Verified:
    """Rows are well formed, and what they train is what a call of the episode was answered."""
    found = Verified()
    episodes = {episode.id: episode for episode in store.episodes()}
    for name, rows in _by_episode(path):
        said = set(_said(store.trace(episodes[name]).calls))
        for row in rows:
            found.rows += 1
            found.calls += len(row["trained"])
            where = f"episode {name!r}, branch {row['branch']}"
            _note(found, (f"{where}: {problem}" for problem in _wrong_messages(row, said)))
    return found


def _by_episode(path: Path) -> Iterator[tuple[str, Iterable[JsonObject]]]:
    return groupby(read_rows(path), key=lambda row: str(row["episode_id"]))


def _note(found: Verified, problems: Iterable[str]) -> None:
    found.problems += list(problems)[: SHOWN - len(found.problems)]


def _wrong_tokens(row: JsonObject, calls: dict[int, Call]) -> Iterator[str]:
    response = np.asarray(row["response_ids"], "<i4")
    whole = np.concatenate([np.asarray(row["prompt_ids"], "<i4"), response])
    mask = np.asarray(row["response_mask"], bool)
    logprobs = None if row["logprobs"] is None else np.asarray(row["logprobs"], "<f4")
    if len(mask) != len(response) or (logprobs is not None and len(logprobs) != len(response)):
        yield "response, mask and logprobs differ in length"
        return
    steps = list(zip(row["step_calls"], row["step_starts"], row["step_stops"], strict=True))
    covered = np.zeros(len(mask), bool)
    for index, start, stop in steps:
        if index not in calls or calls[index].status != 200:
            yield f"call {index} was not answered"
            continue
        covered[start:stop] = True
        if row["exact"]:
            yield from _wrong_step(calls[index], whole, start, stop, len(response))
        if (
            logprobs is not None
            and mask[start:stop].all()
            and logprobs[start:stop].tobytes() != calls[index].logprobs
        ):
            yield f"call {index}: other logprobs than recorded"
    if (mask & ~covered).any():
        yield "tokens are trained that no call sampled"
    if logprobs is not None and not (np.isfinite(logprobs).all() and not logprobs[~mask].any()):
        yield "logprobs are not finite, or not 0 where the mask is 0"


def _wrong_step(call: Call, whole: np.ndarray, start: int, stop: int, length: int) -> Iterator[str]:
    begin = len(whole) - length
    if whole[: begin + start].tobytes() != call.prompt_ids:
        yield f"call {call.index}: another prompt than recorded"
    if whole[begin + start : begin + stop].tobytes() != call.response_ids:
        yield f"call {call.index}: another response than recorded"


def _said(calls: Iterable[Call]) -> Iterator[bytes]:
    for call in calls:
        if call.status == 200:
            with suppress(ValueError):
                yield canonical(plain(conversation(call).messages[-1]))


def _wrong_messages(row: JsonObject, said: Collection[bytes]) -> Iterator[str]:
    messages: Sequence[JsonObject] = row["messages"]
    if not isinstance(msgspec.json.decode(row["tools"]), list):
        yield "tools are no JSON list"
    if sum(message["content"].count(IMAGE) for message in messages) < len(row["images"]):
        yield "more images than places for them"
    if not row["trained"]:
        yield "nothing is trained"
    for position in row["trained"]:
        if canonical(messages[position]) not in said:
            yield f"message {position} is trained, but no call was answered so"
