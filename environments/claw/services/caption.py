"""Image description that always gives the task's own caption, whatever image it is shown."""

from __future__ import annotations

from pathlib import Path

from environments.claw.service import Service, route
from rollout.types import JsonObject


class Caption(Service):
    prefix = "caption"
    fixtures = {"CAPTION_FIXTURES": ""}

    def load(self) -> None:
        """A task without a caption.txt has an empty caption, as in claw-eval."""
        path = Path(self.env["CAPTION_FIXTURES"]) / "caption.txt"
        self.caption = path.read_text("utf-8") if path.is_file() else ""

    @route("/describe")
    def describe(self, image_path: str = "") -> JsonObject:
        return {"caption": self.caption, "confidence": 0.92}

    def audit_entry(self, endpoint: str, body: JsonObject, reply: JsonObject) -> JsonObject:
        return {"endpoint": endpoint, "request_body": body, "timestamp": self.clock.stamp()}
