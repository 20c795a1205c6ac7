"""From the calls of an episode to training samples, token for token.

The ids are those that the model server saw and sampled; nothing is rendered or tokenized again. Calls
merge into one sample where a later prompt begins with the earlier prompt and response, exactly. All else
(sub-agents, compacted or rewritten histories, retries that brought another reply) becomes a sample of its
own. Every sampled token is trained once, after the very prompt that it was sampled from.

A conversation forks where several calls continue the same one. The tokens before the fork are trained in
one sample only: that of the same agent's next call, or else that of the longest branch. The samples of
the other branches begin at the fork and have the shared tokens in their prompt. Masked in the response
they would be as many, but the trainer would have to compute their logits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from rollout.errors import UsageError
from rollout.pictures import digest_of
from rollout.types import Call, CallKind, Episode, Record, Trace
from train.lossy import Render, tokenized
from train.messages import images
from train.tree import Turn, forest

__all__ = [
    "PLAIN",
    "Calls",
    "MissingTokenIds",
    "Report",
    "Rules",
    "Sample",
    "Step",
    "build_samples",
    "left_out",
]

Calls: TypeAlias = Literal["all", "agents", "main", "longest"]
"""Which calls are trained. `all`; `agents`: all but side calls (titles, probes); `main`: the main agent's
own, no sub-agents and no compactions; `longest`: those of the one chain with the most sampled tokens."""

_ITEM = 4
"""Bytes of one int32 or float32."""


class MissingTokenIds(UsageError):
    """The model server gave no token ids for an episode."""


class Rules(Record, frozen=True, kw_only=True):
    """Which calls become samples, and how long a sample may be."""

    calls: Calls = "all"
    truncated: Literal["train", "mask"] = "train"
    """Responses that were cut at a token limit: they are trained, or only kept as context (`mask`, DAPO's
    overlong filtering)."""
    logprobs: bool = True
    """Whether calls without log-probabilities are dropped. Otherwise they are kept, and a sample that has
    such a call has no log-probabilities at all."""
    max_tokens: int = 0
    """Most tokens of a sample, prompt and response together; 0 is no limit."""
    max_response: int = 0
    """Most tokens of a response, tool output between the calls included; 0 is no limit."""
    overlong: Literal["split", "drop"] = "split"
    """What becomes of samples that would be longer. `split`: the call that does not fit any more begins a
    new sample with its whole prompt, or is dropped where it is too long by itself. `drop`: all calls of
    the sample are dropped."""


PLAIN = Rules()


class Step(Record, frozen=True, kw_only=True):
    """One call within a sample's response."""

    call: int
    """`Call.index`."""
    start: int
    """First sampled token, counted from the beginning of the response."""
    stop: int
    """One past the last."""
    turn: int
    """t of the return r_t: how many calls came before this one on its path through the tree."""
    last: int
    """T of the return r_t: the turn of the last call on this branch, also where a token budget cut it
    off."""
    trained: bool = True
    """Whether the rules let it be trained, not only be context."""
    finish: str = ""
    weights: str = ""


class Sample(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One row for a trainer. Advantages are not its business: see `train.credit`."""

    episode_id: str
    task_id: str
    """The group that the episode is compared in."""
    attempt: int
    branch: int
    """Position among the episode's samples, in the order of their first calls."""
    kind: CallKind
    agent: str
    prompt_ids: NDArray[np.int32]
    """The first call's prompt."""
    response_ids: NDArray[np.int32]
    """Its response and all that followed: tool output, further responses."""
    response_mask: NDArray[np.bool_]
    """True where the token was sampled and is trained here."""
    logprobs: NDArray[np.float32] | None
    """As sampled; 0 where the mask is false. None when the server gave none."""
    steps: tuple[Step, ...]
    images: tuple[str, ...] = ()
    """SHA-256 of each image that the last step's prompt shows, in order: names in `Trace.images`."""
    exact: bool = True
    """False for ids that were made from text (`tokenizer=`)."""

    @property
    def weights(self) -> tuple[str, ...]:
        """The versions of the policy's weights that sampled it, in order of first use."""
        return tuple(dict.fromkeys(step.weights for step in self.steps if step.weights))


@dataclass
class Report:
    """Counts over any number of episodes. `sampled` = `trained` + `untrained` tokens."""

    episodes: int = 0
    calls: int = 0
    """All that were recorded; `kept` of them are in a sample."""
    refused: int = 0
    """Answered with an error: never trained."""
    without_ids: int = 0
    empty: int = 0
    """Not a single token was sampled."""
    bad_logprobs: int = 0
    """Dropped because the logprobs are not as many as the ids, or not finite."""
    retries: int = 0
    """Left out because another call has the same prompt and the same response."""
    by_policy: int = 0
    """Left out by `Rules.calls`."""
    overlong: int = 0
    """Dropped by the token budget."""
    truncated: int = 0
    """Cut at a token limit; trained or masked, as the rules say."""
    masked: int = 0
    """Kept as context only."""
    samples: int = 0
    sampled: int = 0
    """Tokens that the policy sampled, as far as there are ids; collapsed retries count once."""
    trained: int = 0
    untrained: int = 0
    """Sampled, but dropped or masked by one of the rules above."""
    prompt: int = 0
    """Prompt tokens of all samples."""
    context: int = 0
    """Untrained tokens of all responses: tool output, masked calls."""

    @property
    def kept(self) -> int:
        """Calls that are a step of some sample, masked ones included."""
        gone = (self.refused, self.without_ids, self.empty, self.bad_logprobs, self.retries)
        return self.calls - sum(gone) - self.by_policy - self.overlong

    def add(self, other: Report) -> None:
        """Count another report's episodes too."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def build_samples(
    episode: Episode,
    trace: Trace,
    rules: Rules = PLAIN,
    *,
    tokenizer: Render | None = None,
) -> tuple[list[Sample], Report]:
    """The episode's samples, and what became of each call.

    Raises MissingTokenIds when none of its calls has ids and no `tokenizer` is there to make some up.
    """
    report = Report(episodes=1, calls=len(trace.calls))
    answered = [call for call in trace.calls if call.status == 200]
    report.refused = report.calls - len(answered)
    exact = any(call.prompt_ids for call in answered) or not answered
    if not exact:
        answered = _made_up(episode, answered, tokenizer, report)
    calls = _usable(answered, rules, report, need_logprobs=rules.logprobs and exact)
    pieces = _pieces(_chains(calls, report), rules, report)
    pieces.sort(key=lambda piece: piece.links[0].call.index)
    samples = [_sample(episode, branch, piece, rules, exact) for branch, piece in enumerate(pieces)]
    _count(samples, report)
    return samples, report


class _Link(NamedTuple):
    """A call, and how deep in the tree of calls it is."""

    call: Call
    turn: Turn
    depth: int


class _Piece(NamedTuple):
    """The part of a chain that becomes one sample."""

    links: list[_Link]
    last: int
    """Depth of the chain's end."""


def _made_up(
    episode: Episode, calls: Iterable[Call], tokenizer: Render | None, report: Report
) -> list[Call]:
    if tokenizer is None:
        raise MissingTokenIds(
            f"episode {episode.id!r}: its model calls have no token ids, the server gave none; run it"
            " with a server that does (vLLM, SGLang), or have ids made from the text (tokenizer=,"
            " --lossy-tokenizer), which are not those that were sampled: the samples say exact=False"
        )
    made = []
    for call in calls:
        try:
            made.append(tokenized(call, tokenizer))
        except ValueError:
            report.without_ids += 1
    return made


def _usable(
    calls: Iterable[Call], rules: Rules, report: Report, *, need_logprobs: bool
) -> list[Call]:
    """The calls with tokens to train, and counts of the others."""
    usable = []
    for call in calls:
        report.sampled += _sampled(call)
        if not call.prompt_ids:
            report.without_ids += 1
        elif not call.response_ids:
            # A server that gives ids only for prompts is no better than one that gives none.
            named = "empty" if not call.usage.completion else "without_ids"
            setattr(report, named, getattr(report, named) + 1)
        elif (need_logprobs or call.logprobs) and not _logprobs_fit(call):
            report.bad_logprobs += 1
        elif left_out(call.kind, rules.calls):
            report.by_policy += 1
        else:
            usable.append(call)
    return usable


def _logprobs_fit(call: Call) -> bool:
    if len(call.logprobs) != len(call.response_ids):
        return False
    return bool(np.isfinite(np.frombuffer(call.logprobs, "<f4")).all())


def left_out(kind: CallKind, policy: Calls) -> bool:
    """Whether a policy says of a call by its kind alone that it is not trained."""
    return (policy == "agents" and kind == "side") or (policy == "main" and kind != "main")


def _chains(calls: Sequence[Call], report: Report) -> list[list[_Link]]:
    turns = [
        Turn(call.prompt_ids + call.response_ids, len(call.prompt_ids), (call.kind, call.agent))
        for call in calls
    ]
    tree = forest(turns)
    report.retries = len(tree.twins)
    report.sampled -= sum(_sampled(calls[i]) for i in tree.twins)
    return [[_Link(calls[i], turns[i], tree.depth[i]) for i in chain] for chain in tree.chains]


def _pieces(chains: Sequence[list[_Link]], rules: Rules, report: Report) -> list[_Piece]:
    if rules.calls == "longest" and chains:
        longest = max(chains, key=lambda chain: sum(_sampled(link.call) for link in chain))
        report.by_policy += sum(len(chain) for chain in chains if chain is not longest)
        chains = [longest]
    pieces = []
    for chain in chains:
        fitting = _fit(chain, rules)
        report.overlong += len(chain) - sum(map(len, fitting))
        pieces += [_Piece(part, chain[-1].depth) for part in fitting]
    return pieces


def _fit(chain: list[_Link], rules: Rules) -> list[list[_Link]]:
    """Cut a chain up so that every part keeps within the token budget."""

    def fits(head: _Link, end: _Link) -> bool:
        whole = len(end.turn.whole)
        response = whole - head.turn.prompt
        return (not rules.max_tokens or whole <= rules.max_tokens * _ITEM) and (
            not rules.max_response or response <= rules.max_response * _ITEM
        )

    if fits(chain[0], chain[-1]):
        return [chain]
    if rules.overlong == "drop":
        return []
    parts: list[list[_Link]] = []
    for link in chain:
        if parts and fits(parts[-1][0], link):
            parts[-1].append(link)
        elif fits(link, link):
            parts.append([link])
    return parts


def _sample(episode: Episode, branch: int, piece: _Piece, rules: Rules, exact: bool) -> Sample:
    head, end = piece.links[0], piece.links[-1]
    whole = np.frombuffer(end.turn.whole, "<i4")
    begin = head.turn.prompt // _ITEM
    response = whole[begin:]
    mask = np.zeros(len(response), np.bool_)
    known = all(link.call.logprobs for link in piece.links)
    logprobs = np.zeros(len(response), np.float32) if known else None
    steps = []
    for link in piece.links:
        step = _step(link, begin, piece.last, rules)
        steps.append(step)
        if step.trained:
            mask[step.start : step.stop] = True
            if logprobs is not None:
                logprobs[step.start : step.stop] = np.frombuffer(link.call.logprobs, "<f4")
    return Sample(
        episode_id=episode.id,
        task_id=episode.task_id,
        attempt=episode.attempt,
        branch=branch,
        kind=head.call.kind,
        agent=head.call.agent,
        prompt_ids=whole[:begin],
        response_ids=response,
        response_mask=mask,
        logprobs=logprobs,
        steps=tuple(steps),
        images=tuple(map(digest_of, images(end.call))),
        exact=exact,
    )


def _step(link: _Link, begin: int, last: int, rules: Rules) -> Step:
    call, turn, depth = link
    return Step(
        call=call.index,
        start=turn.prompt // _ITEM - begin,
        stop=len(turn.whole) // _ITEM - begin,
        turn=depth,
        last=last,
        trained=call.finish != "length" or rules.truncated == "train",
        finish=call.finish,
        weights=call.weights,
    )


def _sampled(call: Call) -> int:
    return len(call.response_ids) // _ITEM


def _count(samples: Sequence[Sample], report: Report) -> None:
    report.samples = len(samples)
    for sample in samples:
        trained = int(np.count_nonzero(sample.response_mask))
        report.trained += trained
        report.prompt += len(sample.prompt_ids)
        report.context += len(sample.response_ids) - trained
        report.truncated += sum(step.finish == "length" for step in sample.steps)
        report.masked += sum(not step.trained for step in sample.steps)
    report.untrained = report.sampled - report.trained
