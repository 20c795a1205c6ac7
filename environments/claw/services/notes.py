"""Meeting notes."""

from __future__ import annotations

from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

SUMMARY = ("note_id", "title", "created_at", "participants", "duration_minutes")


class Notes(Service):
    prefix = "notes"
    fixtures = {"NOTES_FIXTURES": "notes/meetings.json"}
    records = ("shared",)

    def load(self) -> None:
        self.notes = self.rows("NOTES_FIXTURES", *SUMMARY)

    @route("/list", null={})
    def list_notes(self, max_results: int = 10) -> JsonObject:
        found = [pick(note, SUMMARY) for note in self.notes[:max_results]]
        return {"notes": found, "total": len(found)}

    @route("/get")
    def note(self, note_id: str) -> JsonObject:
        return find(self.notes, "note_id", note_id, "Note")

    @route("/share")
    def share(self, note_id: str, recipients: list[str]) -> JsonObject:
        shared = {"note_id": note_id, "recipients": recipients, "timestamp": self.clock.stamp()}
        self.record("shared", shared)
        return {"status": "shared", "record": shared}
