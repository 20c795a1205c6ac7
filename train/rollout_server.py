"""Rollouts over HTTP, for trainers that are not ours.

    python -m train.rollout_server --suite "claweval --tasks 5" --harness react,codex \\
        --model vllm:PATH --folder runs/served

A trainer asks for groups and takes finished ones, with samples and credit: `train.server.client` is the
client, docs/rollout-server.md the schema. Everything survives a restart on the same folder.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import get_args

import msgspec
from aiohttp import web

from rollout.errors import RolloutError, UsageError
from rollout.options import positive
from rollout.types import JsonObject
from suites.command.options import Forced
from suites.command.setup import make_upstream
from train.credit import CreditRules, Estimator
from train.gate import Gate, Gated
from train.mix import parse_mix
from train.options import TrainerParser
from train.runs import ReadyHarness, Source
from train.server.app import SCHEMA, application
from train.server.groups import DeliveryRules, GroupWorker
from train.server.queue import Queue
from train.settings import changes, note, noted

__all__ = ["main", "serve"]

SERVED = "served.json"
TOKEN = "ANYHARNESS_ROLLOUT_TOKEN"
SHUTDOWN = 1.0
"""Seconds that answers under way have at the end: clients wait for groups much longer."""

FAILED, USAGE = 1, 2
"""Exit codes beside 0."""


def main(argv: Sequence[str] | None = None) -> None:
    """Serve until interrupted; exits with 0, 1 (the infrastructure is gone) or 2."""
    try:
        asyncio.run(_main(_parser().parse_args(argv)))
    except (RolloutError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        pass


async def _main(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve(options) as (address, work):
        print(f"rollout server: {address} (GET /v1/info), groups in {options.folder}", flush=True)
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, work}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if work.done():
            work.result()  # why nothing is run any more


@asynccontextmanager
async def serve(options: argparse.Namespace) -> AsyncIterator[tuple[str, asyncio.Task[None]]]:
    """A running server: its address and its work, which ends only when it fails.

    Raises UsageError for what can't work.
    """
    token = os.environ.get(TOKEN, "")
    if not token and not _loopback(options.host):
        raise UsageError(f"--host {options.host}: others may reach it; set {TOKEN} to a secret")
    rules = DeliveryRules(credit=CreditRules(estimator=options.estimator), gamma=options.gamma)
    gate = Gate()
    async with AsyncExitStack() as stack:
        harnesses = await _harnesses(options, gate, stack)
        about = _about(harnesses, rules)
        _claim(options.folder, about)
        queue = Queue(options.folder, limit=options.queue, lease=options.lease)
        stack.callback(queue.close)
        worker = GroupWorker(
            queue, harnesses, options.folder, options.concurrency, options.discard_acked
        )
        app = application(worker, gate, rules, about, token)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, options.host, options.port)
        await site.start()
        work = asyncio.create_task(worker.run())
        stack.push_async_callback(_ended, work)
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}", work


async def _ended(work: asyncio.Task[None]) -> None:
    work.cancel()
    await asyncio.wait({work})


async def _harnesses(
    options: argparse.Namespace, gate: Gate, stack: AsyncExitStack
) -> list[ReadyHarness]:
    """Every harness of the mix. Their gateways share one upstream, and its gate."""
    policy = Gated(make_upstream(options.model, options.base_url), gate)
    stack.push_async_callback(policy.close)
    ready = []
    for spec in parse_mix(options.harness, options.tools):
        forced: Forced = {
            **spec.options,
            "sandbox": options.sandbox,
            "max_tokens": options.max_tokens,
            "temperature": options.temperature,
        }
        source = Source.parse(options.suite, forced=forced)
        setup = await stack.enter_async_context(source.open(policy))
        setup = replace(setup, paused=gate.seconds)
        ready.append(source.ready(spec, setup))
    return ready


def _about(harnesses: Sequence[ReadyHarness], rules: DeliveryRules) -> JsonObject:
    """What `GET /v1/info` says, but for the counts."""
    setups = {one.spec.name: one.setup for one in harnesses}
    return {
        "schema": SCHEMA,
        "model": next(iter(setups.values())).gateway.upstream.fingerprint(),
        "harnesses": {name: setup.harness.fingerprint() for name, setup in setups.items()},
        "environment": next(iter(setups.values())).environment.fingerprint(),
        "tasks": sorted({name for one in harnesses for name in one.tasks}),
        "samples": msgspec.to_builtins(rules.samples),
        "credit": {**msgspec.to_builtins(rules.credit), "gamma": rules.gamma},
    }


def _claim(folder: Path, about: JsonObject) -> None:
    """Note what is served from a folder, or see that it is the same as before the restart."""
    path = folder / SERVED
    if (old := noted(path)) is None:
        note(path, about)
    elif changed := changes(old, about):
        raise UsageError(
            f"{path}: groups here were made with another {', '.join(changed)};"
            " choose another --folder"
        )


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = TrainerParser(
        prog="python -m train.rollout_server",
        description="Serve groups of episodes, as training samples, over HTTP.",
        epilog=f"Where others can reach it, set {TOKEN}: clients send it as a bearer token.",
    )
    parser.add_argument(
        "--suite", required=True, metavar="SPEC", help='NAME, or "NAME --option ..." of its own'
    )
    parser.add_argument(
        "--harness",
        default="react",
        metavar="MIX",
        help="NAME[/TOOLS][:WEIGHT], several with commas (react)",
    )
    parser.add_argument("--tools", default="", help="surface of harnesses that name none")
    parser.add_argument(
        "--model", required=True, metavar="SPEC", help="as suites take it: vllm:PATH, openai:NAME"
    )
    parser.add_argument("--base-url", default="", metavar="URL", help="of the model server")
    parser.add_argument(
        "--folder",
        type=Path,
        required=True,
        metavar="DIR",
        help="orders and episodes are kept here",
    )
    _serving(parser)
    _sampling(parser)
    return parser


def _serving(parser: argparse.ArgumentParser) -> None:
    count, number = positive(int), positive(float)
    parser.add_argument("--host", default="127.0.0.1", help="(127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8700, help="0 takes a free one (8700)")
    parser.add_argument(
        "--concurrency", type=count, default=8, metavar="N", help="episodes at once (8)"
    )
    parser.add_argument(
        "--queue",
        type=count,
        default=256,
        metavar="N",
        help="groups not acknowledged at most (256)",
    )
    parser.add_argument(
        "--lease", type=number, default=300.0, metavar="S", help="until delivered again (300)"
    )
    parser.add_argument(
        "--discard-acked", action="store_true", help="remove records of acknowledged groups"
    )


def _sampling(parser: argparse.ArgumentParser) -> None:
    count, number = positive(int), positive(float)
    parser.add_argument(
        "--estimator", choices=get_args(Estimator), default="grpo", help="of advantages (grpo)"
    )
    parser.add_argument(
        "--gamma", type=number, default=1.0, metavar="X", help="of step returns (1)"
    )
    parser.add_argument("--temperature", type=number, default=1.0, metavar="T", help="(1)")
    parser.add_argument(
        "--max-tokens", type=count, default=8192, metavar="N", help="of one reply (8192)"
    )
    parser.add_argument("--sandbox", default="auto", metavar="KIND", help="(auto)")


if __name__ == "__main__":
    main()
