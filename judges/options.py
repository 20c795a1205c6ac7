"""Who judges, and by which protocol: the options of every program that grades, and what they open."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from judges._prompts import own_only
from judges.cache import JudgeCache
from judges.llm import TEMPERATURE, LLMJudge
from rollout.contract import check as check_contract
from rollout.errors import UsageError
from rollout.gateway.upstream import Upstream
from rollout.judge import Judge
from rollout.plugins import available, load, unknown
from rollout.protocol import Protocol
from rollout.types import JsonObject

__all__ = [
    "add_judge_arguments",
    "add_protocol_arguments",
    "make_protocol",
    "note",
    "open_judge",
    "open_judge_again",
    "protocols",
]

OWN = "own (scores under other prompts are not comparable)"
JUDGE_CACHE = "judge_cache.jsonl"


def add_judge_arguments(group: argparse._ArgumentGroup) -> None:
    """Who judges, for all that grades."""
    group.add_argument("--judge", default="", metavar="SPEC", help="judge model, e.g. openai:NAME")
    group.add_argument(
        "--judge-base-url",
        default="",
        metavar="URL",
        help="address of its server (default: --base-url, else OpenAI's)",
    )
    group.add_argument(
        "--judge-cache",
        type=Path,
        metavar="DIR",
        help="where the judge's replies are kept, for several runs to share (default: the run's folder)",
    )
    group.add_argument(
        "--judge-temperature",
        type=_temperature,
        default=TEMPERATURE,
        metavar="T",
        help="its temperature, or `default` for models that take no other (default: 0)",
    )


def add_protocol_arguments(group: argparse._ArgumentGroup, default: str, meaning: str = "") -> None:
    """How the judge is asked. `meaning` says in words what the default is."""
    group.add_argument(
        "--protocol",
        default=default,
        metavar="NAME[:OPTION=VALUE,...]",
        help=f"judging protocol: {', '.join(protocols())} (default: {meaning or default})",
    )
    group.add_argument(
        "--judge-prompts",
        type=Path,
        metavar="DIR",
        help="a checkout of the protocol's official judge, to ask with its prompts (default: our own)",
    )


def protocols() -> list[str]:
    """The names of the protocols."""
    return [name for name in available("judges") if _protocol(name) is not None]


def make_protocol(spec: str, prompts: Path | None = None) -> Protocol:
    """`webjudge`, `agenttrek:k=3`: a protocol and its options, with official prompts of a checkout.

    Raises UsageError.
    """
    name, _, written = spec.partition(":")
    found = load("judges", name, Protocol) if "." in name else _protocol(name)
    if found is None:
        raise unknown("protocol", name, protocols())
    options: dict[str, Any] = _read(name, found, [each for each in written.split(",") if each])
    if prompts is not None:
        if "prompts" not in inspect.signature(found).parameters:
            own_only(name, prompts)
        options["prompts"] = prompts
    protocol = found(**options)
    check_contract(protocol, Protocol)
    return protocol


def note(protocol: Protocol) -> str:
    """What stands with every figure that a protocol's verdicts make, in a line."""
    told = protocol.fingerprint()
    prompts = "official" if told.get("prompts") == "official" else OWN
    known = ("name", "prompts", "prompts_file", "prompts_sha256")
    settings = [f"{key} {value}" for key, value in told.items() if key not in known]
    name = told.get("name", type(protocol).__name__)
    return f"judged by {', '.join([str(name), *settings])}; prompts: {prompts}"


@asynccontextmanager
async def open_judge(
    spec: str,
    base_url: str,
    cache: Path | None,
    *,
    temperature: float | None = TEMPERATURE,
    check: bool = True,
) -> AsyncIterator[Judge | None]:
    """The judge of a spec, None for an empty one; replies are kept in the folder `cache`.

    Raises UsageError when it can't be reached, unless its old replies may do (`check`).
    """
    if not spec:
        yield None
        return
    name, _, argument = spec.partition(":")
    upstream = load("rollout.gateway.upstreams", name, Upstream, "model").from_spec(
        argument, base_url
    )
    check_contract(upstream, Upstream)
    if upstream.scripted:
        raise UsageError(f"--judge {spec}: plays prepared solutions, judges nothing")
    try:
        if check:
            await upstream.check()
        kept = JudgeCache(cache / JUDGE_CACHE) if cache else None
        yield LLMJudge(upstream, kept, temperature=temperature)
    finally:
        await upstream.close()


@asynccontextmanager
async def open_judge_again(
    chosen: argparse.Namespace, recorded: JsonObject, folder: Path
) -> AsyncIterator[tuple[str, Judge | None]]:
    """The judge that the options name, or else the one of a run in `folder`; its spec, and the judge.

    `recorded` is what the run's manifest says of its judge. That one need not be reachable as long as its
    old replies will do. `--judge-base-url` without `--judge` says where the run's judge is now.
    """
    spec, address, temperature = chosen.judge, chosen.judge_base_url, chosen.judge_temperature
    if not spec:
        spec, address = recorded.get("spec", ""), address or recorded.get("base_url", "")
        temperature = recorded.get("temperature", temperature)
    cache, check = chosen.judge_cache or folder, bool(chosen.judge)
    async with open_judge(spec, address, cache, temperature=temperature, check=check) as judge:
        yield spec, judge


def _protocol(name: str) -> type[Protocol] | None:
    """The protocol of that name; None where that is none, but another part of this package."""
    if name.replace("-", "_") not in available("judges"):
        return None
    try:
        return load("judges", name, Protocol)
    except UsageError:
        return None


def _read(name: str, protocol: type[Protocol], written: list[str]) -> dict[str, Any]:
    """`k=3` -> `{"k": 3}`, as the protocol's constructor has it."""
    known = {
        option: parameter.default
        for option, parameter in inspect.signature(protocol).parameters.items()
        if isinstance(parameter.default, int | float | str)
    }
    read: dict[str, Any] = {}
    for each in written:
        option, given, value = each.partition("=")
        if option not in known or not given:
            raise UsageError(
                f"--protocol {name}: {each!r} is no option; it has: "
                + (", ".join(f"{o}={v}" for o, v in known.items()) or "none")
            )
        kind = type(known[option])
        try:
            read[option] = kind(value)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise UsageError(f"--protocol {name}: {option}={value} must be {what}") from None
    return read


def _temperature(text: str) -> float | None:
    if text == "default":
        return None
    value = float(text)
    if not (value >= 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be at least 0, or `default`, not {text}")
    return value
