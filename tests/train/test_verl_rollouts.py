"""The plug-in's rollouts in verl 0.9.1: real harness, gateway and TransferQueue, a scripted policy."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.quiet import verl_imports

from rollout.errors import UsageError

pytestmark = [
    pytest.mark.verl,
    pytest.mark.timeout(600),
    # Ray leaves the processes of its node to themselves when it shuts down.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
pytest.importorskip("verl", reason="needs verl (make verl-cpu)")

with verl_imports():
    import numpy as np
    import ray
    import torch
    import transfer_queue as tq
    from PIL import Image
    from support.verl_toys import SUITE, Scripted, config, model_folder, prompts, vision
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.padding_utils import upsample_batch_to_divisible_size
    from verl.trainer.ppo.v1 import AgentLoopManagerTQ
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    from train.verl.plugin import AnyHarnessManager, AnyHarnessSync, SuiteTasks
    from train.verl.rollouts import Rollouts
    from train.verl.trainer import scales
    from train.verl.vision import VisionTokenizer

PLUGIN = "train.verl.plugin"
TOY = "support.toy_suite"
PLAIN = ["right", "thinks", "wrong"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", autouse=True)
def queue(model: Path) -> Iterator[None]:
    """Ray on this machine, and TransferQueue in it."""
    start_ray()
    tq.init(config(model, "transfer_queue.enable=true").transfer_queue)
    yield
    tq.close()
    ray.shutdown()


def start_ray() -> None:
    """Ray gives a node 30 s to start; a busy machine may need more, so it gets three tries."""
    workers = {"PYTHONPATH": os.pathsep.join(sys.path), "VERL_USE_EXTERNAL_MODULES": PLUGIN}
    for last in (False, False, True):
        try:
            ray.init(
                num_cpus=8,
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
                runtime_env={"env_vars": workers},
            )
            return
        except Exception:
            if last:
                raise
            ray.shutdown()


def uid() -> str:
    return str(uuid.uuid4())


@asynccontextmanager
async def rollouts(
    model: Path, fates: Sequence[str], *more: str
) -> AsyncIterator[tuple[Rollouts, Scripted, Any]]:
    told = config(model, "anyharness.retries=0", *more)
    client = Scripted(model, fates)
    worker = Rollouts(told, client)
    try:
        yield worker, client, told
    finally:
        await worker.close()


async def group(
    model: Path, fates: Sequence[str], *more: str, **batch: Any
) -> tuple[str, dict[str, dict[str, Any]], Any]:
    """One prompt's uid, the tags of its rows in order, and their fields."""
    one = batch.pop("uid", None) or uid()
    async with rollouts(model, fates, *more) as (worker, _, told):
        await worker.generate_sequences(prompts(told, [one], **batch))
        await worker.drain()
    partition = "val" if batch.get("validate") else "train"
    tags = stored(one, partition)
    status = tags.pop(one)["status"]
    data = tq.kv_batch_get(keys=list(tags), partition_id=partition) if tags else None
    return status, tags, data


def stored(one: str, partition: str = "train") -> dict[str, dict[str, Any]]:
    """Tags of a group's rows by key in order, and of the group itself."""
    tags = (tq.kv_list(partition) or {}).get(partition, {})
    return {key: tags[key] for key in sorted(tags) if key.startswith(one)}


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(4000):
        if holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never came true")


def picture_url(size: tuple[int, int]) -> str:
    data = io.BytesIO()
    Image.new("RGB", size).save(data, "PNG")
    return f"data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}"


def sessions(tags: dict[str, Any]) -> list[int]:
    return [int(key.split("_")[1]) for key in tags]


def rewards(data: Any) -> list[float]:
    return [float(scores.sum()) for scores in data["rm_scores"].unbind()]


async def test_several_rows_a_rollout_with_the_very_tokens_that_were_sampled(model: Path) -> None:
    status, tags, data = await group(model, PLAIN)
    assert status == "finished"
    # 4 attempts: one row, two rows (its thought is not in the next prompt), one row, one row.
    assert sorted(sessions(tags)) == sorted(
        [0, 1, 2, 3, *[s for s in range(4) if sessions(tags).count(s) == 2]]
    )
    assert len(tags) == 5
    for row, tag in zip(data, tags.values(), strict=True):
        mask, logprobs = row["response_mask"].bool(), row["rollout_log_probs"]
        assert torch.equal(row["input_ids"], torch.cat([row["prompts"], row["responses"]]))
        assert torch.equal(row["loss_mask"], row["response_mask"])
        assert row["position_ids"].tolist() == list(range(tag["seq_len"]))
        assert set(logprobs[mask].tolist()) == {-0.5}
        assert set(logprobs[~mask].tolist()) <= {0.0}
        assert row["rm_scores"][:-1].sum() == 0
    assert sorted(set(rewards(data))) == [0.0, 1.0]


async def test_all_rows_of_a_write_have_the_same_fields(model: Path) -> None:
    """1.5: verl takes the field names from the first row."""
    _, tags, data = await group(model, PLAIN)
    needed = {"uid", "num_turns", "metrics", "extra_fields", "data_source", "reward_model"}
    assert all(needed <= set(row.keys()) for row in data)
    assert len(data) == len(tags)


async def test_metrics_and_reward_extra_info_are_on_every_row(model: Path) -> None:
    """1.5: with a reward of its own and several rows, verl raises KeyError where it is missing."""
    _, _, data = await group(model, PLAIN)
    for extra, reward in zip(list(data["extra_fields"]), rewards(data), strict=True):
        assert extra["reward_extra_info"] == {"acc": reward, "score": reward}
    assert all(told["generate_sequences"] >= 0 for told in list(data["metrics"]))


async def test_a_uid_with_an_underscore_is_refused(model: Path) -> None:
    """1.5: verl's replay buffer takes what is before the first one for the uid."""
    status, tags, _ = await group(model, PLAIN, uid=f"a_{uid()}")
    assert (status, tags) == ("failure", {})


async def test_a_dropped_attempt_leaves_no_rows_and_its_siblings_stay(model: Path) -> None:
    """1.7: raising instead would evict the whole group in the async modes."""
    status, tags, data = await group(model, ["right", "explode", "wrong", "right"])
    assert status == "finished"
    assert len(set(sessions(tags))) == 3
    assert sorted(rewards(data)) == [0.0, 1.0, 1.0]


async def test_a_lone_survivor_is_dropped_with_its_group(model: Path) -> None:
    """1.6: verl would give it its raw reward as advantage."""
    status, tags, _ = await group(model, ["right", "explode", "explode", "explode"])
    assert (status, tags) == ("failure", {})


async def test_masking_is_not_dropping(model: Path) -> None:
    """1.7: a masked row trains nothing, but its reward stays in the group's mean."""
    status, tags, data = await group(
        model, ["right", "explode", "wrong", "right"], "anyharness.unclean=mask"
    )
    assert status == "finished"
    assert len(set(sessions(tags))) == 4
    masked = [not row["response_mask"].any() for row in data]
    assert sum(masked) == 1
    assert rewards(data)[masked.index(True)] == 0.0


async def test_a_lost_group_is_drawn_again_in_sync_mode(model: Path) -> None:
    """1.7: a finished group without rows is trained as if it were there, or ends in a RuntimeError."""
    asked: list[int] = []
    lost, kept = uid(), uid()

    def refill(count: int) -> None:
        asked.append(count)
        put(kept, "finished")
        tq.kv_put(key=f"{kept}_0_0", partition_id="train", tag={"status": "success"})

    def put(one: str, status: str) -> None:
        tag = {"is_prompt": True, "status": status, "global_steps": 1}
        tq.kv_put(key=one, partition_id="train", tag=tag)

    for key in list((tq.kv_list("train") or {}).get("train", {})):
        tq.kv_clear(keys=[key], partition_id="train")
    put(lost, "pending")
    assert (await group(model, ["explode"], uid=lost))[0] == "failure"
    buffer = ReplayBuffer(
        trainer_mode="sync",
        trainer_config={},
        max_off_policy_threshold=8,
        max_off_policy_strategy="drop",
        sampler_kwargs={},
        poll_interval=0.01,
        refill_fn=refill,
        gen_batch_size=1,
        sync_refill_failed_groups=True,
    )
    batch, _ = await asyncio.to_thread(
        buffer.sample, global_steps=1, partition_id="train", batch_size=1
    )
    assert (asked, batch.keys) == ([1], [f"{kept}_0_0"])


async def test_training_stops_when_nothing_can_be_graded_any_more(model: Path) -> None:
    async with rollouts(model, ["explode"], "anyharness.give_up_after=2") as (worker, _, told):
        await worker.generate_sequences(prompts(told, [uid(), uid()]))
        await worker.drain()
        assert (await worker.tally()).values()["dropped/environment"] == 8
        with pytest.raises(UsageError, match="2 groups in a row without a single grade"):
            await worker.generate_sequences(prompts(told, [uid()]))


async def test_weight_versions_are_on_every_row(model: Path) -> None:
    """verl's metrics crash on a row without; 1.9: what an update cut off is asked again."""
    _, tags, data = await group(model, ["aborted"])
    versions = {(tag["min_global_steps"], tag["max_global_steps"]) for tag in tags.values()}
    assert all(3 < low <= high <= 7 for low, high in versions)
    assert rewards(data) == [1.0] * 4


async def test_a_held_worker_asks_nothing_until_it_is_released(model: Path) -> None:
    one = uid()
    async with rollouts(model, ["right"]) as (worker, client, told):
        await worker.hold()
        await worker.generate_sequences(prompts(told, [one]))
        await until(lambda: one in stored(one))
        assert (client.asked, stored(one)[one]["status"]) == ([], "running")
        await worker.release()
        await worker.drain()
    assert stored(one)[one]["status"] == "finished"


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # transformers'
async def test_pictures_reach_the_servers_and_the_rows(model: Path) -> None:
    """1.10: as many places in the tokens as there are patches; none is dropped on the way."""
    one, suite, processor = uid(), "support.picture_suite", vision(model)
    async with rollouts(model, ["right"], f"anyharness.suite={suite}") as (worker, client, told):
        client.tokenizer = processor.tokenizer
        worker._worker.processor, worker._worker.tokenizer = processor, processor.tokenizer
        worker._pool._tokenizer = VisionTokenizer(processor)
        await worker.generate_sequences(prompts(told, [one], suite=suite))
        await worker.drain()
    tags = stored(one)
    assert tags.pop(one)["status"] == "finished"
    assert [image.size for asked in client.asked for image in asked["images"] or ()] == [
        (112, 84)
    ] * 4
    rows = tq.kv_batch_get(keys=list(tags), partition_id="train")
    for ids, seen, mask in zip(
        rows["input_ids"].unbind(),
        list(rows["multi_modal_inputs"]),
        rows["response_mask"].unbind(),
        strict=True,
    ):
        places = ids == processor.image_token_id
        patches = int(seen["image_grid_thw"].prod())
        assert seen["pixel_values"].shape[0] == patches == 48
        assert int(places.sum()) == patches // processor.image_processor.merge_size**2
        assert not (places[-len(mask) :] & mask.bool()).any()  # nothing of a picture is trained


def test_pictures_are_counted_once_and_as_the_processor_counts_them(model: Path) -> None:
    class Seen:
        """The processor, and how many pictures it was given."""

        def __init__(self, told: Any) -> None:
            self.told, self.pictures = told, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.told, name)

        def __call__(self, *, text: list[str], images: Any) -> Any:
            self.pictures += len(images or ())
            return self.told(text=text, images=images)

    def says(*sizes: tuple[int, int]) -> list[dict[str, Any]]:
        urls = [picture_url(size) for size in sizes]
        parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
        return [
            {"role": "user", "content": [part, {"type": "text", "text": "?"}]} for part in parts
        ]

    seen = Seen(vision(model))
    tokenizer, plain = VisionTokenizer(seen), seen.told
    for sizes in (((112, 84),), ((112, 84), (56, 56)), ((56, 56), (112, 84), (84, 84))):
        text = plain.apply_chat_template(says(*sizes), add_generation_prompt=True, tokenize=False)
        pictures = [Image.new("RGB", size) for size in sizes]
        wanted = plain(text=[text], images=pictures)["input_ids"][0]
        assert tokenizer.apply_chat_template(says(*sizes), add_generation_prompt=True) == wanted
    assert seen.pictures == 1 + 3  # the first one twice, to see that counting will do


async def test_validation_rows(model: Path) -> None:
    """Sampled as `val_kwargs` says; what broke is left out, and no group is too small."""
    more = ["actor_rollout_ref.rollout.val_kwargs.n=2"]
    async with rollouts(model, ["right", "explode"], *more) as (worker, client, told):
        one = uid()
        await worker.generate_sequences(prompts(told, [one], validate=True))
        await worker.drain()
    tags = stored(one, "val")
    assert tags.pop(one)["status"] == "finished"
    assert len(set(sessions(tags))) == 1
    assert {asked["temperature"] for asked in client.asked} == {0.0}


async def test_the_trainers_advantages_are_those_of_core_algos(model: Path) -> None:
    for estimator, by_std in (("grpo", True), ("dr_grpo", False)):
        batch, data = await trained(
            model, f"anyharness.estimator={estimator}", "anyharness.episode_weights=false"
        )
        last = _last_rows(batch.keys)
        index = np.array([batch.keys[i].split("_")[0] for i in last])
        masks = data["response_mask"].to_padded_tensor(0.0)
        scores = data["rm_scores"].to_padded_tensor(0.0)
        wanted, _ = core_algos.compute_grpo_outcome_advantage(
            scores[last], torch.ones(len(last), 1), index, norm_adv_by_std_in_grpo=by_std
        )
        worth = {
            batch.keys[i].rpartition("_")[0]: value
            for i, value in zip(last, wanted[:, 0], strict=True)
        }
        told = data["advantages"].to_padded_tensor(0.0)
        for key, values, mask in zip(batch.keys, told, masks, strict=True):
            value = worth.get(
                key.rpartition("_")[0], 0.0
            )  # rows that fill the batch up are worth none
            assert torch.allclose(values, value * mask, atol=1e-6)
        assert sum(tag.get("is_padding", False) for tag in batch.tags) > 0


async def test_every_episode_weighs_the_same_in_verls_loss(model: Path) -> None:
    plain = ["anyharness.estimator=dr_grpo"]
    _, even = await trained(model, *plain, "anyharness.episode_weights=false")
    torch.manual_seed(0)
    batch, weighted = await trained(model, *plain)
    mask = weighted["response_mask"].to_padded_tensor(0.0)
    noise = torch.randn(mask.shape)
    loss = core_algos.agg_loss(
        weighted["advantages"].to_padded_tensor(0.0) * noise, mask, "token-mean"
    )
    episodes: dict[str, list[torch.Tensor]] = {}
    for key, values, one in zip(
        batch.keys, even["advantages"].to_padded_tensor(0.0) * noise, mask.bool(), strict=True
    ):
        if not key.startswith("pad"):
            episodes.setdefault(key.rpartition("_")[0], []).append(values[one])
    means = [torch.cat(values).mean() for values in episodes.values()]
    assert torch.allclose(loss, torch.stack(means).mean(), atol=1e-6)


def test_scales_for_a_sum_over_rows() -> None:
    """`seq-mean-token-sum` divides by the rows, those that fill a batch up included."""
    factors = scales([3, 1, 4], ["a", "a", "b"], "seq-mean-token-sum", rows=5)
    assert np.allclose(factors, [5 / 8] * 3)


async def test_gamma_and_gigpo_reach_the_tokens(model: Path) -> None:
    batch, data = await trained(
        model, "anyharness.gamma=0.5", "anyharness.gigpo=1.0", "anyharness.episode_weights=false"
    )
    steps = [extra["anyharness"] for extra in list(data["extra_fields"])]
    real = [i for i, key in enumerate(batch.keys) if not key.startswith("pad")]
    assert all(len(steps[i]["anchors"]) == len(steps[i]["starts"]) for i in real)
    two = next(i for i in real if len(steps[i]["starts"]) == 2)
    told = data["advantages"].to_padded_tensor(0.0)[two]
    first, second = (float(told[start]) for start in steps[two]["starts"])
    assert first != second


async def trained(model: Path, *more: str) -> tuple[Any, Any]:
    """Two groups through the real trainer's `_compute_advantage`, filled up to a multiple of 7."""
    uids = [uid(), uid()]
    async with rollouts(model, [*PLAIN, "wrong"], *more) as (worker, _, told):
        await worker.generate_sequences(prompts(told, uids))
        await worker.drain()
    keys = [key for one in uids for key in stored(one) if "_" in key]
    tags = [tag for one in uids for key, tag in stored(one).items() if "_" in key]
    batch = upsample_batch_to_divisible_size(
        tq.KVBatchMeta(partition_id="train", keys=keys, tags=tags), 7, eos_token_id=2
    )
    data = tq.kv_batch_get(
        keys=batch.keys, partition_id="train", select_fields=["rollout_log_probs"]
    )
    data["old_log_probs"] = data.pop("rollout_log_probs")
    tq.kv_batch_put(keys=batch.keys, partition_id="train", fields=data)
    trainer = trainer_of(told)
    trainer._compute_advantage(batch, {})
    return batch, tq.kv_batch_get(keys=batch.keys, partition_id="train")


def trainer_of(told: Any) -> Any:
    """The trainer without its workers, which need GPUs: `__init__` starts none."""
    return AnyHarnessSync(told)


def _last_rows(keys: Sequence[str]) -> list[int]:
    places = {key: i for i, key in enumerate(keys) if not key.startswith("pad")}
    last: dict[str, str] = {}
    for key in sorted(places):
        last[key.rpartition("_")[0]] = key
    return [places[key] for key in last.values()]


def test_the_trainer_takes_the_place_of_verls_own_mode(model: Path) -> None:
    told = config(model)
    trainer = trainer_of(told)
    assert trainer.trainer_mode == "sync"
    assert type(trainer.replay_buffer) is ReplayBuffer


def test_a_lone_episode_is_worth_nothing(model: Path) -> None:
    """1.6, where another manager has not dropped it."""
    credit = {"starts": [0], "stops": [2], "turns": [0], "last": [0], "anchors": []}
    extra = [{"anyharness": {"reward": reward, **credit}} for reward in (1.0, 1.0, 0.0)]
    batch = tq.KVBatchMeta(partition_id="train", keys=["a_0_0", "b_0_0", "b_1_0"], tags=[{}] * 3)
    masks = [np.ones(2, bool)] * 3
    told = trainer_of(config(model))._advantages(batch, masks, extra, "token-mean")
    assert [values.tolist() for values in told] == [[0.0, 0.0], [0.5, 0.5], [-0.5, -0.5]]


def test_an_update_is_one_step_whatever_the_rows(model: Path, monkeypatch: Any) -> None:
    seen: list[int] = []
    trainer = trainer_of(config(model))
    actor = trainer.config.actor_rollout_ref.actor

    def update(self: Any, batch: Any, metrics: Any) -> Any:
        seen.append(self.config.actor_rollout_ref.actor.ppo_mini_batch_size)
        return batch

    monkeypatch.setattr("verl.trainer.ppo.v1.trainer_base.PPOTrainer._update_actor", update)
    usual = actor.ppo_mini_batch_size
    batch = tq.KVBatchMeta(partition_id="train", keys=[str(i) for i in range(20)], tags=[{}] * 20)
    trainer._update_actor(batch, {})
    assert (seen, actor.ppo_mini_batch_size) == ([5], usual)


def test_the_dataset_names_tasks_of_several_suites(model: Path) -> None:
    told = config(model).data
    rows = SuiteTasks([SUITE, "support.toy_suite --tasks milk"], None, told, max_samples=5)
    assert [rows[i]["task"] for i in range(len(rows))] == ["bread", "milk", "pens", "soap", "milk"]
    with pytest.raises(UsageError, match="unknown suite"):
        SuiteTasks("nope", None, told)


def test_the_manager_spreads_prompts_over_its_workers_and_does_not_wait(model: Path) -> None:
    told = config(model)
    manager = AnyHarnessManager.create(config=told, llm_client=Scripted(model, ["right", "wrong"]))
    uids = [uid() for _ in range(3)]
    try:
        manager.hold()
        manager.generate_sequences(prompts(told, uids))
        manager.release()
        manager.drain()
        assert {stored(one)[one]["status"] for one in uids} == {"finished"}
        told = manager.tally().values()
        assert (told["trained"], told["reward"]) == (12, 0.5)
        assert manager.tally().values() == {}
    finally:
        manager.close()


async def test_harnesses_are_mixed_and_told_apart(model: Path) -> None:
    mix = "anyharness.harness='react/native,react/mcp'"
    async with rollouts(model, ["right", "wrong"], mix) as (worker, _, told):
        await worker.generate_sequences(prompts(told, [uid() for _ in range(8)]))
        await worker.drain()
        values = (await worker.tally()).values()
    assert values["trained"] == 32
    assert {name for name in values if name.startswith("passed/")} == {
        "passed/react/native",
        "passed/react/mcp",
    }
    assert values["passed/react/mcp"] == values["passed"] == 0.5


def test_validation_has_every_task_in_every_harness(model: Path) -> None:
    told = config(model, "anyharness.harness='react:3,react/mcp'")
    rows = list(SuiteTasks(told.data.val_files, None, told.data))
    assert [row["harness"] for row in rows] == ["react"] * 4 + ["react/mcp"] * 4
    assert {row["data_source"] for row in rows} == {f"{TOY}/react", f"{TOY}/react/mcp"}
    assert len({row["index"] for row in rows}) == 8
    trained = list(SuiteTasks(told.data.train_files, None, told.data))
    assert [row["harness"] for row in trained] == [""] * 4


async def test_an_agent_loop_of_verls_own_manager(model: Path) -> None:
    """Depth A: several rows of one rollout through verl's own worker, and none for what broke."""
    told, one = config(model, "anyharness.retries=0"), uid()
    client = Scripted(model, ["thinks", "explode", "wrong", "right"])
    manager = await asyncio.to_thread(AgentLoopManagerTQ.create, config=told, llm_client=client)
    manager.generate_sequences(prompts(told, [one, uid()]))
    await until(lambda: stored(one).get(one, {}).get("status") == "finished")
    tags = stored(one)
    assert tags.pop(one)["status"] == "finished"
    assert len(set(sessions(tags))) < 4
    data = tq.kv_batch_get(keys=list(tags), partition_id="train")
    assert set(rewards(data)) <= {0.0, 1.0}
