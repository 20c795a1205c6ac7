"""A checkout of github.com/claw-eval/claw-eval: what belongs to the tasks beside the tasks themselves."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from environments.claw.service import file_version

__all__ = ["commit_of", "default_fixtures", "hash_of", "server_script"]

DEFAULT = re.compile(r'os\.environ\.get\(\s*"(\w+)",\s*str\((.*?)\),?\s*\)\)', re.S)
"""How the servers fall back: `Path(os.environ.get("X", str(Path(__file__)... / "tasks" / ...)))`."""


def server_script(checkout: Path, kind: str) -> Path:
    """The program of a mock service."""
    return checkout / "mock_services" / kind / "server.py"


def default_fixtures(checkout: Path, kind: str) -> dict[str, Path]:
    """Variable -> the fixture that the original server loads where a task names none.

    Empty where there is no such server: a folder of tasks alone.
    """
    script = server_script(checkout, kind)
    return _defaults(script, file_version(script)) if script.is_file() else {}


@lru_cache(maxsize=64)
def _defaults(script: Path, version: tuple[int, int]) -> dict[str, Path]:  # noqa: ARG001 (cache key)
    checkout = script.parents[2]
    return {
        variable: checkout.joinpath(*re.findall(r'"([^"]+)"', expression))
        for variable, expression in DEFAULT.findall(script.read_text("utf-8"))
    }


def commit_of(folder: Path) -> str:
    """The commit that a checkout is at, with `+` where its tasks are changed; empty without git."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(folder), *words]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    if not (folder / ".git").exists():
        return ""
    changed = git("status", "--porcelain", "--", "tasks", "mock_services", "src")
    return git("rev-parse", "HEAD") + ("+" if changed else "")


def hash_of(fingerprints: dict[str, str]) -> str:
    """SHA-256 over the fingerprints of all tasks, by id."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(fingerprints.items()))
    return sha256(lines.encode()).hexdigest()
