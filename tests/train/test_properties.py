"""Whatever a harness does with its history: every sampled token is trained once, after its own prompt."""

import random
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from support.dialects import STEADY
from support.traces import call, episode, ints, trace

from rollout.types import Call, Outcome
from train.credit import CreditRules, assign, loss_weights
from train.samples import Rules, Sample, build_samples

TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=4)
"""A tiny vocabulary, so that unrelated prompts begin alike by accident."""


class Harness:
    """Plays a harness: keeps a history, and does to it what real ones do."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.calls: list[Call] = []
        self.history = draw(TOKENS)

    def ask(self, prompt: list[int], **more: str) -> list[int]:
        response = self.draw(TOKENS)
        self.calls.append(call(prompt, response, **more))
        return prompt + response

    def turn(self) -> None:
        self.history = self.ask(self.history + self.draw(TOKENS))

    def immediate(self) -> None:
        self.history = self.ask(self.history)

    def truncated(self) -> None:
        self.history = self.ask(self.history, finish="length")

    def strip_thinking(self) -> None:
        start = self.draw(st.integers(0, len(self.history)))
        stop = self.draw(st.integers(start, len(self.history)))
        self.history = self.history[:start] + self.history[stop:] or [0]

    def rewrite(self) -> None:
        place = self.draw(st.integers(0, len(self.history) - 1))
        self.history = [*self.history[:place], 9, *self.history[place + 1 :]]

    def compact(self) -> None:
        self.ask([*self.history, 8], kind="compaction")
        self.history = self.draw(TOKENS)

    def subagents(self) -> None:
        histories = [self.draw(TOKENS) for _ in range(3)]
        for _ in range(2):
            histories = [
                self.ask(history + self.draw(TOKENS), kind="subagent", agent=str(number))
                for number, history in enumerate(histories)
            ]

    def side(self) -> None:
        self.ask([*self.history, 7], kind="side")

    def retry(self) -> None:
        if self.calls:
            self.calls.append(self.draw(st.sampled_from(self.calls)))

    def sample_again(self) -> None:
        if self.calls:
            again = self.draw(st.sampled_from(self.calls))
            self.ask(ints(again.prompt_ids), kind=again.kind, agent=again.agent)

    def refused(self) -> None:
        self.calls.append(call(self.history, [], status=400))


ACTS = (
    Harness.turn,
    Harness.immediate,
    Harness.truncated,
    Harness.strip_thinking,
    Harness.rewrite,
    Harness.compact,
    Harness.subagents,
    Harness.side,
    Harness.retry,
    Harness.sample_again,
    Harness.refused,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[Call]:
    harness = Harness(draw)
    for act in draw(st.lists(st.sampled_from(ACTS), min_size=1, max_size=12)):
        act(harness)
    return harness.calls


Token = tuple[tuple[int, ...], int, float]
"""A context, the token that was sampled after it, and its logprob."""


def sampled(calls: list[Call]) -> Counter[Token]:
    """Straight from the records. A call that is there twice is a retry."""
    found: Counter[Token] = Counter()
    pairs = {(one.prompt_ids, one.response_ids) for one in calls if one.status == 200}
    for prompt_ids, response_ids in pairs:
        prompt, response = ints(prompt_ids), ints(response_ids)
        for place, token in enumerate(response):
            found[(*prompt, *response[:place]), token, -token / 1024] += 1
    return found


def trained(samples: list[Sample]) -> Counter[Token]:
    """Straight from the arrays that a trainer sees."""
    found: Counter[Token] = Counter()
    for sample in samples:
        prompt, response = sample.prompt_ids.tolist(), sample.response_ids.tolist()
        assert sample.logprobs is not None
        assert len(response) == len(sample.response_mask) == len(sample.logprobs)
        for place, wanted in enumerate(sample.response_mask):
            logprob = float(sample.logprobs[place])
            if wanted:
                found[(*prompt, *response[:place]), response[place], logprob] += 1
            else:
                assert logprob == 0
    return found


@given(conversations())
@settings(STEADY, max_examples=300)
def test_every_sampled_token_is_trained_once_after_its_own_prompt(calls: list[Call]) -> None:
    samples, report = build_samples(episode(), trace(*calls))
    assert trained(samples) == sampled(calls)
    assert report.trained == report.sampled == sampled(calls).total()
    assert report.kept == sum(len(sample.steps) for sample in samples)


@given(conversations(), st.integers(1, 12), st.integers(1, 30))
@settings(STEADY, max_examples=200)
def test_under_a_token_budget_nothing_is_trained_twice_or_elsewhere(
    calls: list[Call], max_response: int, max_tokens: int
) -> None:
    rules = Rules(max_response=max_response, max_tokens=max_tokens)
    samples, report = build_samples(episode(), trace(*calls), rules)
    fits = {
        (one.prompt_ids, one.response_ids)
        for one in calls
        if len(one.response_ids) <= max_response * 4
        and len(one.prompt_ids + one.response_ids) <= max_tokens * 4
    }
    kept = [one for one in calls if (one.prompt_ids, one.response_ids) in fits]
    assert trained(samples) == sampled(kept)
    assert report.sampled == report.trained + report.untrained
    assert all(len(sample.response_ids) <= max_response for sample in samples)


@given(conversations(), st.randoms(use_true_random=False))
@settings(STEADY, max_examples=200)
def test_the_order_of_arrival_does_not_matter(calls: list[Call], rng: random.Random) -> None:
    shuffled = list(calls)
    rng.shuffle(shuffled)
    assert rows(calls) == rows(shuffled)


def rows(calls: list[Call]) -> list[tuple[object, ...]]:
    samples, _ = build_samples(episode(), trace(*calls))
    return sorted(
        (
            sample.prompt_ids.tobytes(),
            sample.response_ids.tobytes(),
            sample.response_mask.tobytes(),
            [msgspec.structs.replace(step, call=0, finish="") for step in sample.steps].__repr__(),
        )
        for sample in samples
    )


@settings(STEADY)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1), st.booleans()), max_size=12),
    st.sampled_from(["grpo", "dr_grpo", "rloo"]),
    st.sampled_from(["drop", "mask", "score"]),
)
def test_advantages_of_a_group_sum_to_zero_over_its_episodes(
    attempts: list[tuple[str, float, bool]], estimator: str, unclean: str
) -> None:
    episodes = [
        episode(task, number, score)
        if clean
        else episode(task, number, outcome=Outcome.INFRA_ERROR, grade=None)
        for number, (task, score, clean) in enumerate(attempts)
    ]
    rules = CreditRules(estimator=estimator, unclean=unclean)  # type: ignore[arg-type]
    credits, report = assign(episodes, rules)
    for task in "ab":
        members = [credit for name, credit in credits.items() if name.startswith(task)]
        assert len(members) != 1
        assert abs(sum(credit.advantage for credit in members)) < 1e-6
    assert report.clean + report.unclean == len(attempts)
    again, _ = assign(reversed(episodes), rules)
    assert again.keys() == credits.keys()
    assert all(abs(again[name].advantage - credits[name].advantage) < 1e-9 for name in credits)


@settings(STEADY)
@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from("abc")), min_size=1, max_size=20))
def test_every_episode_weighs_the_same(rows: list[tuple[int, str]]) -> None:
    tokens, names = [n for n, _ in rows], [name for _, name in rows]
    weights = loss_weights(tokens, names)
    share = 1 / len(set(names))
    for name in set(names):
        mine = [w for w, other in zip(weights, names, strict=True) if other == name]
        assert abs(sum(mine) - share) < 1e-9
