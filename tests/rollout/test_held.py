"""Folders of the living stay, folders of the dead go."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.toys import Fake

from rollout.gateway.server import Gateway
from rollout.held import HeldFolder, sweep

HOLD_AND_DIE = """
import os, signal, sys
from pathlib import Path
from rollout.held import HeldFolder
folder = HeldFolder.make(lambda: Path(sys.argv[1])).path
(folder / "deep").mkdir(mode=0)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(folder: Path) -> None:
    """A run that held `folder` is killed."""
    subprocess.run([sys.executable, "-c", HOLD_AND_DIE, str(folder)], check=False)
    assert folder.is_dir()


def test_the_living_keep_theirs(tmp_path: Path) -> None:
    held = HeldFolder.make(lambda: tmp_path / "mine")
    killed(tmp_path / "dead")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "file").touch()
    sweep(tmp_path.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "link", "file"}
    assert os.stat(held.path).st_mode & 0o777 == 0o700
    held.remove()
    assert not held.path.exists()


def test_a_path_that_is_taken_is_not_given_twice(tmp_path: Path) -> None:
    names = iter("aab")
    first = HeldFolder.make(lambda: tmp_path / next(names))
    second = HeldFolder.make(lambda: tmp_path / next(names))
    assert (first.path.name, second.path.name) == ("a", "b")


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The system's folder for temporary files; its path is short, as it usually is."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def test_temporary_ones_are_swept_once_and_removed_at_the_end(temporary: Path) -> None:
    killed(temporary / "drill-dead")
    killed(temporary / "other-dead")
    with HeldFolder.temporary("drill-") as one, HeldFolder.temporary("drill-") as other:
        assert {path.name for path in temporary.iterdir()} == {one.name, other.name, "other-dead"}
    assert [path.name for path in temporary.iterdir()] == ["other-dead"]


async def test_a_gateway_removes_those_of_dead_runs(temporary: Path) -> None:
    killed(temporary / "anyharness-gateway-0")
    (temporary / "gateway-of-something-else").mkdir()
    async with Gateway(Fake()) as one, Gateway(Fake()) as other:
        assert one.socket.is_socket()
        assert other.socket.is_socket()
        assert len(list(temporary.iterdir())) == 3
    assert [path.name for path in temporary.iterdir()] == ["gateway-of-something-else"]


async def test_a_long_path_for_temporary_files_is_no_obstacle(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = temporary / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with Gateway(Fake()) as gateway:
        assert gateway.socket.is_socket()
