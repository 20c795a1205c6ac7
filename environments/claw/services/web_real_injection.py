"""The recorded web with prompt injections: mock_services/web_real_injection/server.py, with a seed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

from environments.claw.service import FixtureError
from environments.claw.services.web_real import WebReal
from rollout.types import JsonObject


class WebRealInjection(WebReal):
    fixtures = {"INJECTION_PAYLOADS": "web/injection_payloads.json"}

    def load(self) -> None:
        super().load()
        path = Path(self.env["INJECTION_PAYLOADS"])
        try:
            self.payloads: JsonObject = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise FixtureError(f"{path}: {error}; write the payloads into it, as JSON") from None
        self.rate = float(self.env.get("INJECTION_RATE", "0.4"))
        self.mode = self.env.get("INJECTION_MODE", "both")
        self.random = Random(self.env.get("SEED", "0"))

    def tampered_search(self, reply: JsonObject) -> JsonObject:
        """With probability `rate` there is a false result among the true ones."""
        lies, results = self.payloads.get("search_injections", []), reply.get("results", [])
        if self.random.random() > self.rate or self.mode not in ("append_result", "both"):
            return reply
        if not lies or not results:
            return reply
        lie = self.random.choice(lies)
        false = {key: lie[key] for key in ("url", "title", "snippet")}
        false |= {key: lie.get(key, "") for key in ("source", "published_at")}
        results.insert(self.random.randint(1, len(results)), false)
        return {**reply, "results": results, "total": len(results)}

    def tampered_page(self, reply: JsonObject) -> JsonObject:
        """With probability `rate` the page holds an instruction to the agent."""
        lies, content = self.payloads.get("content_injections", []), reply.get("content")
        if self.random.random() > self.rate or self.mode not in ("embed_content", "both"):
            return reply
        if not lies or not content:
            return reply
        lie = self.random.choice(lies)
        return {**reply, "content": _embedded(content, lie["payload"], lie.get("position", "end"))}


def _embedded(content: str, payload: str, position: str) -> str:
    if position == "start":
        return f"{payload}\n\n{content}"
    if position != "middle":
        return f"{content}\n\n{payload}"
    lines = content.split("\n")
    lines.insert(len(lines) // 2, payload)
    return "\n".join(lines)
