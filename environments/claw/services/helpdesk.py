"""Support tickets."""

from __future__ import annotations

from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

SUMMARY = ("ticket_id", "title", "reporter", "department", "priority", "status", "created_at")


class Helpdesk(Service):
    prefix = "helpdesk"
    fixtures = {"HELPDESK_FIXTURES": "helpdesk/tickets.json"}
    records = ("closed", "updated_tickets")

    def load(self) -> None:
        self.tickets = self.rows("HELPDESK_FIXTURES", *SUMMARY)

    @route("/tickets", null={})
    def list_tickets(self, status: str = "open") -> JsonObject:
        found = [
            pick(ticket, SUMMARY) for ticket in self.tickets if status in ("all", ticket["status"])
        ]
        return {"tickets": found, "total": len(found)}

    @route("/tickets/get")
    def ticket(self, ticket_id: str) -> JsonObject:
        return find(self.tickets, "ticket_id", ticket_id, "Ticket")

    @route("/tickets/update")
    def update(
        self,
        ticket_id: str,
        priority: str | None = None,
        tags: list[str] | None = None,
        category: str | None = None,
    ) -> JsonObject:
        ticket = find(self.tickets, "ticket_id", ticket_id, "Ticket")
        changes = {"priority": priority, "tags": tags, "category": category}
        ticket.update({key: value for key, value in changes.items() if value is not None})
        self.record("updated_tickets", ticket)
        return {"status": "updated", "ticket": ticket}

    @route("/tickets/close")
    def close(self, ticket_id: str, resolution: str) -> JsonObject:
        ticket = find(self.tickets, "ticket_id", ticket_id, "Ticket")
        ticket.update(status="closed", resolution=resolution)
        self.record("closed", ticket)
        return {"status": "closed", "ticket": ticket}
