"""A knowledge base: articles to search, read and correct."""

from __future__ import annotations

from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

SUMMARY = ("article_id", "title", "category", "tags", "last_updated", "views")


class Kb(Service):
    prefix = "kb"
    fixtures = {"KB_FIXTURES": "kb/articles.json"}
    records = ("updates",)

    def load(self) -> None:
        self.articles = self.rows("KB_FIXTURES", *SUMMARY, "content")

    @route("/search")
    def search(self, query: str, category: str | None = None, max_results: int = 5) -> JsonObject:
        wanted = _tokens(query)
        found = [
            {**pick(article, SUMMARY), "snippet": article["content"][:150] + "..."}
            for article in self.articles
            if (not category or article["category"] == category)
            and not wanted.isdisjoint(_tokens(_text(article)))
        ][:max_results]
        return {"articles": found, "total": len(found)}

    @route("/articles/get")
    def article(self, article_id: str) -> JsonObject:
        return find(self.articles, "article_id", article_id, "Article")

    @route("/articles/update")
    def update(self, article_id: str, content: str) -> JsonObject:
        article = find(self.articles, "article_id", article_id, "Article")
        article.update(content=content, last_updated=self.clock.now().strftime("%Y-%m-%d"))
        self.record("updates", {"article_id": article_id, "timestamp": self.clock.stamp()})
        return {"status": "updated", "article_id": article_id}


def _text(article: JsonObject) -> str:
    return " ".join((article["title"], *article["tags"], article["content"]))


def _tokens(text: str) -> set[str]:
    """Words, pairs of neighbouring characters, and single Chinese characters.

    The pairs make the search a loose one in English as well: claw-eval's is.
    """
    pairs = {text[i : i + 2].lower() for i in range(len(text) - 1)}
    return {
        *text.lower().split(),
        *(pair for pair in pairs if not pair.isspace()),
        *(character for character in text if "\u4e00" <= character <= "\u9fff"),
    }
