"""An address book, with messages to the people in it."""

from __future__ import annotations

from environments.claw.service import Service, find, route
from rollout.types import JsonObject


class Contacts(Service):
    prefix = "contacts"
    fixtures = {"CONTACTS_FIXTURES": "contacts/contacts.json"}
    records = ("sent_messages",)

    def load(self) -> None:
        self.people = self.rows("CONTACTS_FIXTURES", "contact_id", "name", "department")

    @route("/search")
    def search(self, query: str, department: str | None = None) -> JsonObject:
        found = [
            person
            for person in self.people
            if query in person["name"]
            and (department is None or department in person["department"])
        ]
        return {"contacts": found, "total": len(found)}

    @route("/get")
    def contact(self, contact_id: str) -> JsonObject:
        return find(self.people, "contact_id", contact_id, "Contact")

    @route("/send_message")
    def send_message(self, contact_id: str, message: str) -> JsonObject:
        sent = {"contact_id": contact_id, "message": message, "timestamp": self.clock.stamp()}
        self.record("sent_messages", sent)
        return {"status": "sent", "record": sent}
