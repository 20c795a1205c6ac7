"""What claw-eval's graders want to know of the agent's sandbox: commands run in it, files read from it.

The keys and shapes are those of claw-eval (`_collect_env_snapshot` in src/claw_eval/cli.py and its
sandbox/server.py): `cmd:<exact command>`, `file:<path>`, `local_file:<path>`.
"""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path

from rollout.errors import SandboxError
from rollout.sandbox import ExecResult, Sandbox
from rollout.types import JsonObject, Record

__all__ = ["WORKSPACE", "SnapshotSpec", "take_snapshot"]

WORKSPACE = "/workspace"
"""Where claw-eval's commands expect the agent's files."""

MAX_FILES = 50
"""Files that one pattern gives at most."""

PYTHON = 'command -v python >/dev/null 2>&1 || python() { python3 "$@"; }\n'
"""Before each command: Debian calls it python3 only."""

GLOB = """\
import glob, json, os, sys
found = sorted(glob.glob(sys.argv[1], recursive=True))[:int(sys.argv[2])]
print(json.dumps([path for path in found if os.path.isfile(path)]))
"""

TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/xml",
        "application/yaml",
        "application/x-yaml",
        "application/javascript",
    }
)
TEXT_SUFFIXES = re.compile(
    r"\.(txt|md|csv|json|ya?ml|xml|html?|js|ts|py|sh|bash|cfg|ini|toml|log|sql|r|rmd)$", re.I
)


class SnapshotSpec(Record, frozen=True, kw_only=True):
    """What is to be looked at."""

    commands: tuple[str, ...] = ()
    """Run with `sh -c` in the workspace, in this order."""
    files: tuple[str, ...] = ()
    """Paths or patterns, read after the commands have run."""
    grader_files: dict[str, str] = {}
    """Path in the workspace -> path on the host; the agent never sees them."""
    local_files: dict[str, str] = {}
    """Name -> path on the host; they never enter the sandbox."""
    timeout: float = 10.0
    """Seconds for each command."""

    def __bool__(self) -> bool:
        return bool(self.commands or self.files or self.grader_files or self.local_files)

    @property
    def needs_sandbox(self) -> bool:
        return bool(self.commands or self.files)


async def take_snapshot(spec: SnapshotSpec, sandbox: Sandbox) -> JsonObject:
    """The snapshot, as claw-eval's graders are given it. Raises SandboxError."""
    found: JsonObject = {}
    if spec.needs_sandbox:
        placed = {name: Path(path).read_bytes() for name, path in spec.grader_files.items()}
        await sandbox.write({f"{sandbox.workspace}/{name}": data for name, data in placed.items()})
    for command in spec.commands:
        found[f"cmd:{command}"] = await _run(command, spec.timeout, sandbox)
    for pattern in spec.files:
        try:
            paths = await _matches(pattern, spec.timeout, sandbox)
        except (TimeoutError, ValueError) as error:  # a tree of the agent's making
            found[f"file:{pattern}"] = {"error": str(error) or f"Timed out after {spec.timeout:g}s"}
            continue
        for path in paths:
            found[f"file:{path}"] = await _read(path, sandbox)
    return found | _local(spec.local_files.items())


async def _run(command: str, timeout: float, sandbox: Sandbox) -> JsonObject:
    try:
        result = await _exec(("sh", "-c", PYTHON + command), timeout, sandbox)
    except TimeoutError:
        return {"exit_code": -1, "stdout": "", "stderr": f"Timed out after {timeout:g}s"}
    return {
        "exit_code": result.exit_code,
        "stdout": result.stdout.decode(errors="replace"),
        "stderr": result.stderr.decode(errors="replace"),
    }


async def _exec(argv: tuple[str, ...], timeout: float, sandbox: Sandbox) -> ExecResult:
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": sandbox.home,
        "LANG": "C.UTF-8",
        # The agent may have left modules there.
        "PYTHONNOUSERSITE": "1",
    }
    async with asyncio.timeout(timeout):
        return await sandbox.exec(argv, env=env, cwd=sandbox.workspace)


async def _matches(pattern: str, timeout: float, sandbox: Sandbox) -> list[str]:
    if "*" not in pattern and "?" not in pattern:
        return [pattern]
    # Isolated: the agent may have left a glob.py in the workspace.
    argv = ("python3", "-I", "-c", GLOB, pattern, str(MAX_FILES))
    result = await _exec(argv, timeout, sandbox)
    if result.exit_code:
        raise ValueError(f"listing {pattern}: {result.stderr.decode(errors='replace')[-300:]}")
    paths: list[str] = json.loads(result.stdout)
    return paths


async def _read(path: str, sandbox: Sandbox) -> JsonObject:
    try:
        content = await sandbox.read(path)
    except SandboxError as error:
        return {"error": str(error)}
    if content is None:
        return {"error": f"File not found: {path}"}
    mime, _ = mimetypes.guess_type(path)
    textual = mime in TEXT_TYPES or (mime or "").startswith("text/")
    if textual or (mime is None and TEXT_SUFFIXES.search(path)):
        text = content.decode("utf-8", errors="replace")
        return {"content": text, "mime_type": mime or "text/plain", "encoding": "utf-8"}
    return {
        "content": b64encode(content).decode("ascii"),
        "mime_type": mime or "application/octet-stream",
        "encoding": "base64",
        "size_bytes": len(content),
    }


def _local(files: Iterable[tuple[str, str]]) -> JsonObject:
    return {
        f"local_file:{name}": {
            "encoding": "base64",
            "content": b64encode(Path(path).read_bytes()).decode("ascii"),
        }
        for name, path in files
    }
