"""The real web, replayed from what claw-eval's own web service recorded.

The cache is that of mock_services/web_real/server.py: one file a reply, named by the SHA-256 of
`search:<query>:<max_results>` or `fetch:<url>`. To record one, run the original service with a search key
(`--services original`, SERP_DEV_KEY). What was not recorded is answered as the original answers when the
web can't be reached, and remarked on.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from environments.claw.service import route
from environments.claw.services._notices import Notices
from rollout.types import JsonObject

__all__ = ["WebReal"]

NOT_RECORDED = "not in the recorded cache"


class WebReal(Notices):
    def load(self) -> None:
        self.cache = Path(self.env["WEB_REAL_CACHE_DIR"])
        self.searches_left = int(self.env.get("MAX_SEARCHES", "20"))
        self.fetches_left = int(self.env.get("MAX_FETCHES", "30"))

    @route("/search")
    def search(self, query: str, max_results: int = 10) -> JsonObject:
        if self.searches_left <= 0:
            limit = self.env.get("MAX_SEARCHES", "20")
            return _no_results(query, f"Session search limit reached ({limit})")
        if (found := self._recorded(f"search:{query}:{max_results}")) is not None:
            return self.tampered_search(found)
        self.searches_left -= 1
        self.remarks.append(f"web search {query!r} ({max_results} results): {NOT_RECORDED}")
        return _no_results(query, f"Search failed: {NOT_RECORDED}")

    @route("/fetch")
    def fetch(self, url: str, timeout_seconds: int = 30) -> JsonObject:
        if self.fetches_left <= 0:
            limit = self.env.get("MAX_FETCHES", "30")
            return _no_page(429, url, f"Session fetch limit reached ({limit})")
        if (found := self._recorded(f"fetch:{url}")) is not None:
            return self.tampered_page(found)
        self.fetches_left -= 1
        self.remarks.append(f"web page {url}: {NOT_RECORDED}")
        return _no_page(500, url, f"Fetch failed: {NOT_RECORDED}")

    def tampered_search(self, reply: JsonObject) -> JsonObject:
        """A recorded search reply as the agent gets it."""
        return reply

    def tampered_page(self, reply: JsonObject) -> JsonObject:
        """A recorded page as the agent gets it."""
        return reply

    def _recorded(self, key: str) -> JsonObject | None:
        """None too for a file that can't be read, as the original has it."""
        path = self.cache / f"{sha256(key.encode()).hexdigest()}.json"
        try:
            found = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        found.pop("_cached_at", None)
        return found or None


def _no_results(query: str, error: str) -> JsonObject:
    return {"results": [], "total": 0, "query": query, "error": error}


def _no_page(status: int, url: str, error: str) -> JsonObject:
    return {"status_code": status, "url": url, "error": error, "content": None}
