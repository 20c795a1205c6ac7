"""Mail: an inbox to read, messages to send, drafts to save."""

from __future__ import annotations

from datetime import timedelta

from environments.claw.clock import parse_time
from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

HEADERS = ("message_id", "from", "subject", "date", "is_read", "labels")


class Gmail(Service):
    prefix = "gmail"
    fixtures = {"GMAIL_FIXTURES": "gmail/inbox.json"}
    records = ("sent_messages", "drafts")

    def load(self) -> None:
        self.inbox = self.rows("GMAIL_FIXTURES", *HEADERS)
        if self.inbox and not self.clock.fixed:
            self._shift_to_yesterday()

    def _shift_to_yesterday(self) -> None:
        """Without a clock of its own, a task's newest mail is one day old, as claw-eval has it."""
        dates = [parse_time(mail["date"]) for mail in self.inbox]
        shift = self.clock.now() - timedelta(days=1) - max(dates)
        for mail, date in zip(self.inbox, dates, strict=True):
            mail["date"] = (date + shift).strftime("%Y-%m-%dT%H:%M:%SZ")

    @route("/messages", null={})
    def messages(self, days_back: int = 7, max_results: int = 20) -> JsonObject:
        oldest = self.clock.now() - timedelta(days=days_back)
        recent = [mail for mail in self.inbox if parse_time(mail["date"]) >= oldest]
        found = [pick(mail, HEADERS) for mail in recent][:max_results]
        return {"messages": found, "total": len(found)}

    @route("/messages/get")
    def message(self, message_id: str) -> JsonObject:
        return find(self.inbox, "message_id", message_id, "Message")

    @route("/send")
    def send(self, to: str, subject: str, body: str) -> JsonObject:
        message = {"to": to, "subject": subject, "body": body, "timestamp": self.clock.stamp()}
        self.record("sent_messages", message)
        return {"status": "sent", "message": message}

    @route("/drafts/save")
    def save_draft(
        self, to: str, subject: str, body: str, reply_to_message_id: str | None = None
    ) -> JsonObject:
        draft = {
            "to": to,
            "subject": subject,
            "body": body,
            "reply_to_message_id": reply_to_message_id,
            "timestamp": self.clock.stamp(),
        }
        self.record("drafts", draft)
        return {"status": "draft_saved", "draft": draft}
