"""What both web services have besides the web: a way to tell somebody."""

from __future__ import annotations

from environments.claw.service import EMPTY_LIST, Service, route
from rollout.types import JsonObject

__all__ = ["Notices"]


class Notices(Service):
    """Base of the web services."""

    prefix = "web"
    records = ("notifications",)

    @route("/notify")
    def notify(self, channel: str, message: str, recipients: list[str] = EMPTY_LIST) -> JsonObject:
        notice = {
            "channel": channel,
            "message": message,
            "recipients": recipients,
            "timestamp": self.clock.stamp(),
        }
        self.record("notifications", notice)
        return {"status": "sent", "record": notice}
