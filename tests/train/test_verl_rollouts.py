"""The plug-in's rollouts in verl 0.9.1: real harness, gateway and TransferQueue, a scripted policy."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.verl, pytest.mark.timeout(600)]
pytest.importorskip("verl", reason="needs verl (make verl-cpu)")

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="Ray state API", category=DeprecationWarning)
    import ray
    import transfer_queue as tq
    from support.verl_toys import Scripted, config, model_folder, prompts

    from train.verl_rollouts import Rollouts


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def queue(model: Path) -> Iterator[None]:
    """Ray on this machine, and TransferQueue in it."""
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False, configure_logging=False)
    tq.init(config(model, "transfer_queue.enable=true").transfer_queue)
    yield
    tq.close()
    ray.shutdown()


def uid() -> str:
    return str(uuid.uuid4())


@asynccontextmanager
async def rollouts(
    model: Path, fates: Sequence[str], *more: str
) -> AsyncIterator[tuple[Rollouts, Scripted, Any]]:
    told, client = config(model, *more), Scripted(model, fates)
    worker = Rollouts(told, client)
    try:
        yield worker, client, told
    finally:
        await worker.close()


def rows(one: str, partition: str = "train") -> dict[str, dict[str, Any]]:
    """Tags of a group's rows by key, and of the group itself."""
    tags = (tq.kv_list(partition) or {}).get(partition, {})
    return {key: tag for key, tag in tags.items() if key.split("_")[0] == one}


async def test_rows_of_a_group(queue: None, model: Path) -> None:
    one = uid()
    async with rollouts(model, ["right", "wrong"]) as (worker, client, told):
        await worker.generate_sequences(prompts(told, [one]))
        await worker.drain()
        tags = rows(one)
        assert tags.pop(one)["status"] == "finished"
        data = tq.kv_batch_get(keys=sorted(tags), partition_id="train")
    print({k: data[k] for k in data.keys()})
    print(tags)
