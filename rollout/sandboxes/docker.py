"""`--sandbox docker`: one container a command, without network, capabilities or a writable root.

The image is built once by `make images` from the recipe in `images/`; its tag is the recipe's hash. Its
memory and process limits are the kernel's own (cgroups), exact where the other sandboxes sample.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from rollout.errors import SandboxError
from rollout.sandbox import Limits, Sandbox, SandboxProvider, SandboxSpec
from rollout.sandboxes import _layout
from rollout.sandboxes._folder import Folder, FolderSandbox, order_for, private_folder
from rollout.sandboxes._process import SUPERVISOR, answer_of, supervise
from rollout.sandboxes._seccomp import system_call_filter
from rollout.types import JsonObject

__all__ = ["Docker", "image"]

RECIPE = Path(__file__).with_name("images")
FOLDER_LABEL = "anyharness.folder"
HOST_LABEL = "anyharness.host"


def image() -> str:
    """Name and tag of the image; the tag changes with the recipe."""
    digest = hashlib.sha256()
    for path in sorted(RECIPE.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return f"anyharness-sandbox:{digest.hexdigest()[:12]}"


class Docker(SandboxProvider):
    """Containers, for those who trust the Docker daemon to keep an agent in."""

    name = "docker"
    isolates = True

    def __init__(self) -> None:
        self._swept = False

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        _layout.share_socket(spec.gateway_socket)
        async with private_folder(own_user=True) as folder:
            if not self._swept:
                self._swept = True
                await _sweep()
            command = _command(spec, folder)
            sandbox = FolderSandbox(
                folder,
                _layout.places(folder),
                gateway=_layout.GATEWAY,
                workspace=_layout.WORKSPACE,
                home=_layout.HOME,
                command=lambda: command,
                order=order_for(
                    spec.limits,
                    socket=_layout.GATEWAY_SOCKET,
                    port=_layout.GATEWAY_PORT,
                    seccomp=system_call_filter(),  # older profiles of docker let these calls pass
                    container=True,
                ),
                host_env=os.environ,
            )
            try:
                yield sandbox
            finally:
                await sandbox.close()
                await asyncio.shield(_remove(await _containers(FOLDER_LABEL, str(folder.path))))

    async def check(self) -> str:
        code, output = await answer_of("docker", "version", "--format", "{{.Server.Version}}")
        if code == 127:
            return "docker is not installed; get it with: apt-get install docker.io"
        if code:
            return (
                f"the Docker daemon does not answer ({_last_line(output)}); start it with: dockerd"
            )
        code, _ = await answer_of("docker", "image", "inspect", image())
        if code:
            return f"the image {image()} is missing; build it with: make images"
        spec = SandboxSpec(gateway_socket=Path(os.devnull), gateway_port=0)
        try:
            async with self.open(spec) as sandbox:
                await sandbox.exec(["true"], env={})
        except SandboxError as error:
            return f"docker does not work here: {error}"
        return ""

    def fingerprint(self) -> JsonObject:
        identity = subprocess.run(
            ["docker", "image", "inspect", "--format", "{{.Id}}", image()],
            check=False,
            capture_output=True,
            text=True,
        ).stdout.strip()
        return {"sandbox": self.name, "image": image(), "image_id": identity}


def _command(spec: SandboxSpec, folder: Folder) -> list[str]:
    user = str(folder.uid)
    read_only = {
        _layout.SUPERVISOR_PATH: SUPERVISOR,
        _layout.GATEWAY_SOCKET: spec.gateway_socket.absolute(),
        **_layout.write_accounts(folder, folder.uid),
        **{str(path.absolute()): path.absolute() for path in spec.programs},
    }
    return [
        *("docker", "run", "--interactive", "--rm", "--pull", "never"),
        *("--network", "none", "--read-only"),
        *(
            "--label",
            f"{FOLDER_LABEL}={folder.path}",
            "--label",
            f"{HOST_LABEL}={socket.gethostname()}",
        ),
        *("--user", f"{user}:{user}", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--hostname", "sandbox", "--workdir", "/", "--entrypoint", ""),
        *_limits(spec.limits),
        *_mounts(_layout.places(folder), ""),
        *_mounts(read_only, ",readonly"),
        image(),
        *supervise("/usr/bin/python3", _layout.SUPERVISOR_PATH),
    ]


def _limits(limits: Limits) -> Iterable[str]:
    if limits.memory_mb:
        yield from ("--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m")
    if limits.cpus:
        yield from ("--cpus", str(limits.cpus))
    if limits.processes:
        yield from ("--pids-limit", str(limits.processes))


def _mounts(mounts: dict[str, Path], options: str) -> Iterable[str]:
    for inside, source in mounts.items():
        yield from ("--mount", f"type=bind,source={source},target={inside}{options}")


async def _containers(label: str, value: str) -> list[tuple[str, str]]:
    """Identity and private folder of the containers that carry a label."""
    template = f'{{{{.ID}}}} {{{{.Label "{FOLDER_LABEL}"}}}}'
    _, output = await answer_of(
        *("docker", "ps", "--all", "--no-trunc", "--format", template),
        *("--filter", f"label={label}={value}"),
    )
    lines = (line.partition(" ") for line in output.splitlines())
    return [(identity, folder) for identity, _, folder in lines]


async def _remove(containers: list[tuple[str, str]]) -> None:
    if containers:
        await answer_of("docker", "rm", "--force", *(identity for identity, _ in containers))


async def _sweep() -> None:
    """Remove this host's containers whose run is dead: its folder has been swept already."""
    ours = await _containers(HOST_LABEL, socket.gethostname())
    await _remove([each for each in ours if not os.path.isdir(each[1])])


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else "no output"


def main() -> int:
    """Build the image, unless this very recipe has been built."""
    inspect = subprocess.run(
        ["docker", "image", "inspect", image()], check=False, capture_output=True
    )
    if inspect.returncode == 0:
        print(f"{image()} is there already")
        return 0
    return subprocess.run(["sh", str(RECIPE / "build.sh"), image()], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
