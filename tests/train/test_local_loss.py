"""The local trainer's losses against verl's own functions."""

import random
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: make verl-cpu")

from train.credit import group_advantages  # noqa: E402
from train.local.loss import (  # noqa: E402
    Aggregation,
    Clip,
    policy_loss,
    reverse_kl,
    token_weights,
)

pytestmark = [
    pytest.mark.verl,
    pytest.mark.filterwarnings("ignore"),  # of verl's imports
]


@pytest.fixture
def algos() -> Any:
    return pytest.importorskip(
        "verl.trainer.ppo.core_algos", reason="needs verl: make verl-cpu", exc_type=ImportError
    )


@pytest.fixture
def rows() -> Any:
    """Padded, as verl has them: some wholly masked, ratios far from 1 among them."""
    dice = torch.Generator().manual_seed(0)
    shape = (7, 11)
    new = -3 * torch.rand(shape, generator=dice)
    old = new + 2 * torch.randn(shape, generator=dice)
    advantages = torch.randn(shape[0], 1, generator=dice).expand(shape).contiguous()
    mask = (torch.rand(shape, generator=dice) < 0.6).float()
    mask[3] = 0
    return SimpleNamespace(new=new, old=old, advantages=advantages, mask=mask)


def flat(rows: Any, values: Any) -> Any:
    return values[rows.mask.bool()]


def weights(rows: Any, mode: Aggregation, episodes: list[str] | None = None) -> Any:
    counts = rows.mask.sum(-1).int().tolist()
    each = token_weights(counts, episodes or list(map(str, range(len(counts)))), mode)
    return torch.tensor(each).repeat_interleave(torch.tensor(counts))


@pytest.mark.parametrize("mode", [one for one in get_args(Aggregation) if one != "episode-mean"])
def test_policy_loss_is_verls(algos: Any, rows: Any, mode: Aggregation) -> None:
    from verl.workers.config import FSDPActorConfig

    config = FSDPActorConfig(
        strategy="fsdp",
        clip_ratio_low=0.2,
        clip_ratio_high=0.28,
        clip_ratio_c=3.0,
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
    )
    expected, metrics = algos.compute_policy_loss_vanilla(
        rows.old, rows.new, rows.advantages, rows.mask, mode, config
    )
    ours = policy_loss(*(flat(rows, v) for v in (rows.new, rows.old, rows.advantages)), Clip())
    assert float((weights(rows, mode) * ours.loss).sum()) == pytest.approx(
        float(expected), abs=1e-6
    )
    assert float(ours.clipped.mean()) == pytest.approx(metrics["actor/pg_clipfrac"], abs=1e-6)
    assert float(ours.old_kl.mean()) == pytest.approx(metrics["actor/ppo_kl"], abs=1e-6)


def test_kl_is_verls(algos: Any, rows: Any) -> None:
    expected = algos.kl_penalty_forward(rows.new, rows.old, "low_var_kl")
    assert torch.allclose(reverse_kl(rows.new, rows.old), expected, atol=1e-6)


def test_advantages_are_verls(algos: Any) -> None:
    dice = random.Random(0)
    rewards = [[dice.random() for _ in range(size)] for size in (2, 5, 8)]
    flat_rewards = torch.tensor([reward for group in rewards for reward in group])
    index = np.array([n for n, group in enumerate(rewards) for _ in group])
    for ours, norm in (("grpo", True), ("dr_grpo", False)):
        told, _ = algos.compute_grpo_outcome_advantage(
            flat_rewards[:, None], torch.ones(len(index), 1), index, norm_adv_by_std_in_grpo=norm
        )
        mine = np.concatenate([group_advantages(group, ours) for group in rewards])
        assert told[:, 0].numpy() == pytest.approx(mine, abs=1e-6)


def test_every_episode_weighs_the_same(rows: Any) -> None:
    """However many rows and tokens it came apart into."""
    counts, names = [10, 30, 5, 0], ["a", "a", "b", "b"]
    each = token_weights(counts, names, "episode-mean")
    share = dict.fromkeys(names, 0.0)
    for count, name, weight in zip(counts, names, each, strict=True):
        share[name] += count * weight
    assert share == pytest.approx({"a": 0.5, "b": 0.5})


def test_a_split_batch_has_the_same_gradient(rows: Any) -> None:
    """Weights are of the whole batch, so micro-batches just add up."""
    whole = policy_loss(
        flat(rows, rows.new), flat(rows, rows.old), flat(rows, rows.advantages), Clip()
    )
    told = weights(rows, "token-mean") * whole.loss
    assert float(told[:9].sum() + told[9:].sum()) == pytest.approx(float(told.sum()))
