"""`python -m harness_wrappers doctor [NAME ...]`: which harnesses work on this machine."""

from __future__ import annotations

import argparse
import asyncio
import sys

from harness_wrappers._doctor import examine
from rollout import sandboxes
from rollout.errors import UsageError
from rollout.plugins import available


def main() -> None:
    """Exits with 0, 1 when a harness is installed and does not work, or 2 for wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m harness_wrappers")
    doctor = parser.add_subparsers(required=True).add_parser(
        "doctor", help="try every installed harness on one tiny task per tool surface"
    )
    doctor.add_argument("names", nargs="*", metavar="NAME", help="harnesses (all)")
    doctor.add_argument("--sandbox", default="auto", metavar="KIND", help="as for a run (auto)")
    options = parser.parse_args()
    try:
        sys.exit(asyncio.run(_doctor(options.names, options.sandbox)))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


async def _doctor(names: list[str], sandbox: str) -> int:
    provider = await sandboxes.choose(sandbox)
    print(f"sandbox      {provider.name}" + (f": {provider.warning}" if provider.warning else ""))
    failed = False
    async for finding in examine(names or available("harness_wrappers"), provider):
        print(finding, flush=True)
        failed |= finding.failed
    return int(failed)


if __name__ == "__main__":
    main()
