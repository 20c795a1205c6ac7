"""A process that appends episodes until it is killed, and says on stdout which ones are written."""

import asyncio
import random
import sys
from pathlib import Path

from rollout.store import EpisodeStore
from rollout.types import Call, Episode, Outcome, Trace


async def write(folder: Path) -> None:
    exists = (folder / "episodes.jsonl").exists()
    with EpisodeStore.open(folder) if exists else EpisodeStore.create(folder) as store:
        start = len(store.episodes())
        print("ready", flush=True)
        for number in range(start, 100_000):
            request = random.Random(number).randbytes(random.Random(-number).choice((10, 200_000)))
            call = Call(index=0, dialect="chat", kind="main", request=request, reply=b"{}")
            episode = Episode(id=f"t#{number}", task_id="t", attempt=number, outcome=Outcome.FAILED)
            await store.append(episode, Trace(calls=(call,)))
            print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
