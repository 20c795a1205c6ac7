"""Stops rented browsers when our process can't any more: a forgotten one is billed until its time is up.

    python -I -S cloud_guard.py

stdin: a line of JSON with `api` and `key`, then `+ID` for each session that begins and `-ID` for each
that was stopped. Our process holds the other end; however it dies, the pipe closes, and what is left is
stopped here. The key comes by stdin because command lines are there for all to read.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
import urllib.error
import urllib.request

TRIES = 4
TIMEOUT = 20.0


def main() -> None:
    """Keep the list of sessions until stdin ends, then stop them."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    order = json.loads(sys.stdin.readline())
    sessions: dict[str, None] = {}
    for line in sys.stdin:
        sign, session = line[0], line[1:].strip()
        if sign == "+":
            sessions[session] = None
        else:
            sessions.pop(session, None)
    for session in sessions:
        _stop(f"{order['api']}/browsers/{session}", order["key"])


def _stop(url: str, key: str) -> None:
    headers = {"X-Browser-Use-API-Key": key, "Content-Type": "application/json"}
    request = urllib.request.Request(url, b'{"action": "stop"}', headers, method="PATCH")
    for attempt in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                return
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                return  # it is stopped already, or never was ours
        except OSError:
            pass
        time.sleep(2.0**attempt)


if __name__ == "__main__":
    with contextlib.suppress(ValueError):
        main()
