"""Bounds on the connections that agents may hold: file descriptors are the whole run's.

An agent reaches the gateway's socket directly and may open what it likes. Whoever has not yet sent a
request with a valid token is a stranger; of those only the latest few are kept. A session's own
connections are counted, and the ones beyond its share refused.
"""

from __future__ import annotations

import logging
import resource
from collections import deque
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from rollout.gateway.session import Session

__all__ = ["Doorkeeper", "quiet_logger", "raise_file_limit"]

STRANGERS = 512
SHARE = 512
"""Connections of one session. Codex may send hundreds of tool calls at once, each on its own."""
FILES = 65_536


class Doorkeeper:
    """Makes the protocols of new connections, and lets go of those that outstay."""

    def __init__(self, make: Callable[[], RequestHandler]) -> None:
        self._make = make
        self._strangers: deque[RequestHandler] = deque()
        self._known: dict[RequestHandler, str] = {}
        """Connection -> its session's token."""

    def __call__(self) -> RequestHandler:
        """A protocol for a connection that has just come."""
        while len(self._strangers) >= STRANGERS:
            oldest = self._strangers.popleft()
            if oldest not in self._known and oldest.transport is not None:
                oldest.transport.abort()
        handler = self._make()
        self._strangers.append(handler)
        return handler

    def admit(self, handler: RequestHandler, session: Session) -> bool:
        """Whether a session may have this connection, which has just shown its token."""
        if handler in self._known:
            return True
        self._known = {each: of for each, of in self._known.items() if each.transport is not None}
        if sum(of == session.token for of in self._known.values()) >= SHARE:
            return False
        self._known[handler] = session.token
        return True


def raise_file_limit() -> None:
    """As far as it goes: the usual soft limit of 1,024 is for programs that use select(2)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def quiet_logger() -> logging.Logger:
    """The server's, without what is an agent's to write: requests that are no HTTP."""
    logger = logging.getLogger(__name__)
    logger.addFilter(_is_ours)
    return logger


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)
