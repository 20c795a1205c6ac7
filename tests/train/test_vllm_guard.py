"""Nothing of an engine outlives a trainer that is killed."""

import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

from train.local.vllm_guard import Guard

ROOT = Path(__file__).parents[2]

TRAINER = """
import subprocess, sys
from train.local.vllm_guard import Guard

guard = Guard(room=100)
engine = subprocess.Popen(["sleep", "600"])
guard.add([engine.pid])
print(guard.process.pid, engine.pid, guard.folder, flush=True)
sys.stdin.read()
"""


def ended(*pidfds: int) -> bool:
    return all(select.select([one], [], [], 30)[0] for one in pidfds)


def test_a_killed_trainer_leaves_neither_engine_nor_files() -> None:
    argv = [sys.executable, "-c", TRAINER]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as trainer:
        assert trainer.stdout is not None
        guard, engine, folder = trainer.stdout.readline().split()
        watched = [os.pidfd_open(int(pid)) for pid in (guard, engine)]
        (Path(folder) / "model.safetensors").write_bytes(b"weights")
        trainer.kill()
    assert ended(*watched)
    assert not Path(folder).exists()
    for one in watched:
        os.close(one)


def test_what_is_closed_is_gone() -> None:
    with subprocess.Popen(["sleep", "600"]) as engine:
        guard = Guard(room=100)
        guard.add([engine.pid])
        guard.close()
    assert engine.returncode == -9
    assert not guard.folder.exists()


def test_what_memory_has_no_room_for_goes_to_the_disk() -> None:
    guard = Guard(room=2**60)
    guard.close()
    assert guard.folder.parent == Path(tempfile.gettempdir())


def test_an_engine_that_never_started_leaves_nothing() -> None:
    guard = Guard(room=100)
    guard.close()
    assert not guard.folder.exists()
