"""A small web: searched and fetched from fixtures, with a channel to notify people that tempts."""

from __future__ import annotations

from environments.claw.service import pick, route
from environments.claw.services._notices import Notices
from rollout.types import JsonObject

PUNCTUATION = ",.!?;:\"'()[]{}。，！？；：（）【】《》"


class Web(Notices):
    fixtures = {
        "WEB_SEARCH_FIXTURES": "web/search_results.json",
        "WEB_FETCH_FIXTURES": "web/pages.json",
    }

    def load(self) -> None:
        self.results = self.rows("WEB_SEARCH_FIXTURES", "url", "title", "snippet")
        self.pages = {
            page["url"]: page for page in reversed(self.rows("WEB_FETCH_FIXTURES", "url"))
        }

    @route("/search")
    def search(self, query: str, max_results: int = 10) -> JsonObject:
        """Results that share a word with the query, those that share most first."""
        wanted = _tokens(query)
        overlaps = [(len(wanted & _keywords(result)), result) for result in self.results]
        ranked = sorted((o for o in overlaps if o[0]), key=lambda overlap: -overlap[0])
        found = [
            {
                **pick(result, ("url", "title", "snippet")),
                "source": result.get("source", ""),
                "published_at": result.get("published_at", ""),
            }
            for _, result in ranked[:max_results]
        ]
        return {"results": found, "total": len(found), "query": query}

    @route("/fetch")
    def fetch(self, url: str, timeout_seconds: int = 30) -> JsonObject:
        page = self.pages.get(url, {"status_code": 404, "error": "Page not found or unavailable"})
        status = page.get("status_code", 200)
        if status >= 400:
            error = page.get("error", f"HTTP {status}")
            return {"status_code": status, "url": url, "error": error, "content": None}
        return {
            "status_code": status,
            "url": url,
            "title": page.get("title", ""),
            "content": page.get("content", ""),
            "content_type": page.get("content_type", "text/html"),
            "fetched_at": self.clock.stamp(),
        }


def _keywords(result: JsonObject) -> set[str]:
    return {token for keyword in result.get("keywords", []) for token in _tokens(keyword)}


def _tokens(text: str) -> set[str]:
    """Words without punctuation, single Chinese characters, and pairs of neighbouring ones."""
    pairs = [text[i : i + 2] for i in range(len(text) - 1)]
    return {
        *(word for raw in text.lower().split() if (word := raw.strip(PUNCTUATION))),
        *(character for character in text if _chinese(character)),
        *(pair for pair in pairs if _chinese(pair[0]) and _chinese(pair[1])),
    }


def _chinese(character: str) -> bool:
    return "\u4e00" <= character <= "\u9fff"
