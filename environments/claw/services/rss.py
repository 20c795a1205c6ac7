"""News feeds, and a newsletter to publish."""

from __future__ import annotations

from environments.claw.service import EMPTY_LIST, Service, find, pick, route
from rollout.types import JsonObject

SUMMARY = ("article_id", "title", "source", "category", "published_at", "summary", "word_count")


class Rss(Service):
    prefix = "rss"
    fixtures = {"RSS_FIXTURES": "rss/articles.json"}
    records = ("published",)

    def load(self) -> None:
        self.articles = self.rows("RSS_FIXTURES", *SUMMARY)

    @route("/feeds", null={})
    def feeds(self, category: str | None = None) -> JsonObject:
        found: dict[str, JsonObject] = {}
        for article in self.articles:
            if category and article["category"] != category:
                continue
            source = article["source"]
            feed = found.setdefault(
                source, {"source": source, "categories": [], "article_count": 0}
            )
            feed["article_count"] += 1
            if article["category"] not in feed["categories"]:
                feed["categories"].append(article["category"])
        return {"feeds": list(found.values()), "total": len(found)}

    @route("/articles", null={})
    def list_articles(
        self, source: str | None = None, category: str | None = None, max_results: int = 20
    ) -> JsonObject:
        found = [
            pick(article, SUMMARY)
            for article in self.articles
            if (not source or article["source"] == source)
            and (not category or article["category"] == category)
        ][:max_results]
        return {"articles": found, "total": len(found)}

    @route("/articles/get")
    def article(self, article_id: str) -> JsonObject:
        return find(self.articles, "article_id", article_id, "Article")

    @route("/publish")
    def publish(self, title: str, content: str, recipients: list[str] = EMPTY_LIST) -> JsonObject:
        published = {
            "title": title,
            "content": content,
            "recipients": recipients,
            "timestamp": self.clock.stamp(),
        }
        self.record("published", published)
        return {"status": "published", "record": published}
