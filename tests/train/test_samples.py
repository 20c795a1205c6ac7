"""Calls to samples: merging, branching, and what is left out."""

import msgspec
import numpy as np
import pytest
from support.traces import call, episode, floats, trace

from rollout.types import Call, JsonObject
from train.samples import PLAIN, MissingTokenIds, Report, Rules, Sample, build_samples


def built(*calls: Call, rules: Rules = PLAIN) -> tuple[list[Sample], Report]:
    return build_samples(episode(), trace(*calls), rules)


def rows(*calls: Call, rules: Rules = PLAIN) -> list[tuple[list[int], list[int], list[int]]]:
    """Prompt, response, and the tokens of it that are trained."""
    samples, _ = built(*calls, rules=rules)
    return [
        (s.prompt_ids.tolist(), s.response_ids.tolist(), s.response_ids[s.response_mask].tolist())
        for s in samples
    ]


def test_a_conversation_is_one_sample() -> None:
    samples, report = built(
        call([1, 2], [3, 4]),
        call([1, 2, 3, 4, 50, 51], [5]),
        call([1, 2, 3, 4, 50, 51, 5, 60], [6]),
    )
    [sample] = samples
    assert sample.prompt_ids.tolist() == [1, 2]
    assert sample.response_ids.tolist() == [3, 4, 50, 51, 5, 60, 6]
    assert sample.response_mask.tolist() == [True, True, False, False, True, False, True]
    assert sample.logprobs is not None
    assert sample.logprobs.tolist() == [-3 / 1024, -4 / 1024, 0, 0, -5 / 1024, 0, -6 / 1024]
    assert [(step.start, step.stop, step.turn, step.last) for step in sample.steps] == [
        (0, 2, 0, 2),
        (4, 5, 1, 2),
        (6, 7, 2, 2),
    ]
    assert sample.exact
    assert (report.samples, report.sampled, report.trained, report.untrained) == (1, 4, 4, 0)
    assert (report.prompt, report.context) == (2, 3)


def test_a_history_that_was_rewritten_by_one_token_is_another_sample() -> None:
    assert rows(call([1], [2, 3]), call([1, 2, 4, 9], [5])) == [
        ([1], [2, 3], [2, 3]),
        ([1, 2, 4, 9], [5], [5]),
    ]


def test_sampled_ids_that_come_back_tokenized_otherwise_do_not_merge() -> None:
    """The same text in other tokens: training them as sampled would be training what never was."""
    assert len(rows(call([1], [23]), call([1, 2, 3, 9], [5]))) == 2


def test_a_prompt_that_ends_within_the_response_does_not_continue_it() -> None:
    assert len(rows(call([1], [2, 3]), call([1, 2], [7]))) == 2


def test_ids_that_agree_only_as_bytes_do_not_merge() -> None:
    assert len(rows(call([1], [256]), call([1, 256 + (1 << 24)], [7]))) == 2


def test_at_a_fork_shared_tokens_are_trained_once_and_the_longest_branch_goes_on() -> None:
    shared, short = call([1], [2]), call([1, 2, 30], [3])
    long, longer = call([1, 2, 40], [4]), call([1, 2, 40, 4, 50], [5])
    assert rows(shared, short, long, longer) == [
        ([1], [2, 40, 4, 50, 5], [2, 4, 5]),
        ([1, 2, 30], [3], [3]),
    ]


def test_at_a_fork_it_counts_how_far_a_branch_goes_in_the_end() -> None:
    shared, wide = call([1], [2]), call([1, 2, 30], [3, 3, 3])
    narrow, farther = call([1, 2, 40], [4]), call([1, 2, 40, 4, 50, 51, 52], [5])
    assert rows(shared, wide, narrow, farther)[0] == (
        [1],
        [2, 40, 4, 50, 51, 52, 5],
        [2, 4, 5],
    )


def test_a_response_is_continued_where_nothing_was_added_to_it() -> None:
    assert rows(call([1], [2, 3]), call([1, 2, 3], [4])) == [([1], [2, 3, 4], [2, 3, 4])]


def test_at_a_fork_the_same_agent_goes_on_even_where_another_goes_farther() -> None:
    side = call([1, 2, 30], [3] * 9, kind="side")
    assert rows(call([1], [2]), side, call([1, 2, 40], [4])) == [
        ([1], [2, 40, 4], [2, 4]),
        ([1, 2, 30], [3] * 9, [3] * 9),
    ]


def test_a_repeated_call_is_one_and_another_reply_to_the_same_prompt_is_another() -> None:
    samples, report = built(call([1], [2]), call([1], [2]), call([1], [3]))
    assert [sample.response_ids.tolist() for sample in samples] == [[2], [3]]
    assert (report.retries, report.sampled, report.trained) == (1, 2, 2)
    assert samples[0].steps[0].call == 0


def test_the_same_tokens_with_another_boundary_are_both_trained() -> None:
    assert sorted(rows(call([1], [2, 3]), call([1, 2], [3]))) == [
        ([1], [2, 3], [2, 3]),
        ([1, 2], [3], [3]),
    ]


def test_refused_calls_are_never_trained() -> None:
    samples, report = built(call([1], [2]), call([1], [9], status=400))
    assert len(samples) == 1
    assert (report.calls, report.refused, report.sampled) == (2, 1, 1)


@pytest.mark.parametrize(
    "logprobs", [[], [-1.0], [-1.0] * 3, [-1.0, float("nan")], [-1.0, -float("inf")]]
)
def test_a_call_whose_logprobs_do_not_fit_is_dropped_and_stays_context(
    logprobs: list[float],
) -> None:
    bad = call([1], [2, 3], logprobs=floats(logprobs))
    samples, report = built(bad, call([1, 2, 3, 9], [4]))
    assert [sample.prompt_ids.tolist() for sample in samples] == [[1, 2, 3, 9]]
    assert (report.bad_logprobs, report.sampled, report.trained, report.untrained) == (1, 3, 1, 2)


def test_logprobs_can_be_done_without() -> None:
    rules = Rules(logprobs=False)
    samples, report = built(call([1], [2], logprobs=b""), call([5], [6]), rules=rules)
    assert samples[0].logprobs is None
    assert samples[1].logprobs is not None
    assert report.bad_logprobs == 0


def test_which_calls_are_trained() -> None:
    calls = (
        call([1], [2, 2, 2]),
        call([7], [8], kind="side"),
        call([9], [10], kind="compaction"),
        call([5], [6], kind="subagent"),
    )

    def trained(which: str) -> set[str]:
        rules = Rules(calls=which)  # type: ignore[arg-type]
        samples, report = built(*calls, rules=rules)
        assert report.by_policy == 4 - len(samples)
        assert report.sampled == report.trained + report.untrained == 6
        return {sample.kind for sample in samples}

    assert trained("all") == {"main", "side", "compaction", "subagent"}
    assert trained("agents") == {"main", "compaction", "subagent"}
    assert trained("main") == {"main"}
    assert trained("longest") == {"main"}


def test_a_side_call_left_out_is_still_what_the_next_prompt_says() -> None:
    calls = call([1], [2]), call([1, 2, 30], [3], kind="side"), call([1, 2, 30, 3, 9], [4])
    assert rows(*calls, rules=Rules(calls="agents")) == [([1], [2, 30, 3, 9, 4], [2, 4])]


def test_truncated_responses_are_trained_or_masked() -> None:
    calls = call([1], [2, 3], finish="length"), call([1, 2, 3, 9], [4])
    assert rows(*calls) == [([1], [2, 3, 9, 4], [2, 3, 4])]
    samples, report = built(*calls, rules=Rules(truncated="mask"))
    [sample] = samples
    assert sample.response_ids[sample.response_mask].tolist() == [4]
    assert sample.logprobs is not None
    assert sample.logprobs[:3].tolist() == [0, 0, 0]
    assert [step.trained for step in sample.steps] == [False, True]
    assert (report.truncated, report.masked, report.untrained) == (1, 1, 2)


CHAIN = (call([1], [2]), call([1, 2, 30], [3]), call([1, 2, 30, 3, 40], [4, 5]))


def test_a_response_over_budget_goes_on_in_another_sample_with_its_own_prompt() -> None:
    assert rows(*CHAIN, rules=Rules(max_response=3)) == [
        ([1], [2, 30, 3], [2, 3]),
        ([1, 2, 30, 3, 40], [4, 5], [4, 5]),
    ]
    samples, _ = built(*CHAIN, rules=Rules(max_response=3))
    assert [(step.turn, step.last) for step in samples[1].steps] == [(2, 2)]


def test_what_is_too_long_by_itself_is_dropped() -> None:
    samples, report = built(*CHAIN, rules=Rules(max_tokens=6))
    assert [sample.response_ids.tolist() for sample in samples] == [[2, 30, 3]]
    assert (report.overlong, report.untrained) == (1, 2)
    samples, report = built(*CHAIN, rules=Rules(max_response=1))
    assert [sample.response_ids.tolist() for sample in samples] == [[2], [3]]
    assert report.overlong == 1


def test_a_chain_over_budget_can_be_dropped_whole() -> None:
    other = call([7], [8])
    samples, report = built(*CHAIN, other, rules=Rules(max_response=5, overlong="drop"))
    assert [sample.prompt_ids.tolist() for sample in samples] == [[7]]
    assert report.overlong == 3


def test_weight_versions_are_kept_per_call_and_told_in_order() -> None:
    calls = [msgspec.structs.replace(one, weights=w) for one, w in zip(CHAIN, "121", strict=True)]
    [sample], _ = built(*calls)
    assert [step.weights for step in sample.steps] == ["1", "2", "1"]
    assert sample.weights == ("1", "2")


def test_a_response_without_tokens_is_counted() -> None:
    samples, report = built(call([1], [2]), call([1, 2, 9], []))
    assert len(samples) == 1
    assert report.empty == 1


def test_a_call_without_ids_among_others_is_counted() -> None:
    samples, report = built(call([1], [2]), call([], []))
    assert len(samples) == 1
    assert report.without_ids == 1


def test_an_episode_of_empty_responses_is_not_one_without_ids() -> None:
    samples, report = built(call([1], []))
    assert (samples, report.empty) == ([], 1)


def test_an_episode_without_ids_says_what_to_do() -> None:
    with pytest.raises(MissingTokenIds, match=r"'task#0'.*vLLM.*tokenizer=.*exact=False"):
        built(call([], []))


def test_ids_made_from_text_are_marked() -> None:
    def render(
        messages: list[JsonObject], tools: list[JsonObject], *, add_generation_prompt: bool
    ) -> list[int]:
        return [*range(len(messages)), *([9] if add_generation_prompt else [])]

    unreadable = call([], [], reply=b"{}")
    samples, report = build_samples(episode(), trace(call([], []), unreadable), tokenizer=render)
    [sample] = samples
    assert not sample.exact
    assert sample.logprobs is None
    assert sample.response_ids.tolist() == [1]
    assert report.without_ids == 1
    [sample], _ = build_samples(episode(), trace(call([1], [2])), tokenizer=render)
    assert sample.exact


def test_an_episode_without_answers_has_no_samples() -> None:
    assert built() == ([], Report(episodes=1))
    samples, report = built(call([], [], status=400))
    assert (samples, report.refused) == ([], 1)


def test_images_are_told_by_their_digests_in_order() -> None:
    urls = [
        "data:image/png;base64,AAAA",
        "data:image/png;base64,BBBB",
        "data:image/png;base64,AAAA",
    ]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    request = msgspec.json.encode({"messages": [{"role": "user", "content": parts}]})
    [sample], _ = built(call([1], [2], request=request))
    assert len(sample.images) == 3
    assert sample.images[0] == sample.images[2] != sample.images[1]


def test_reports_add_up() -> None:
    total = Report()
    for calls in (CHAIN, CHAIN[:1]):
        total.add(built(*calls)[1])
    assert (total.episodes, total.calls, total.sampled, total.trained) == (2, 4, 5, 5)


def test_arrays_are_of_the_types_that_trainers_take() -> None:
    [sample], _ = built(*CHAIN)
    assert sample.prompt_ids.dtype == sample.response_ids.dtype == np.int32
    assert sample.response_mask.dtype == np.bool_
    assert sample.logprobs is not None
    assert sample.logprobs.dtype == np.float32
