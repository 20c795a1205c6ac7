"""Customers, and reports about them."""

from __future__ import annotations

from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

SUMMARY = (
    "customer_id",
    "name",
    "contact_person",
    "tier",
    "status",
    "industry",
    "annual_revenue",
)


class Crm(Service):
    prefix = "crm"
    fixtures = {"CRM_FIXTURES": "crm/customers.json"}
    records = ("exported_reports",)

    def load(self) -> None:
        self.customers = self.rows("CRM_FIXTURES", *SUMMARY)

    @route("/customers", null={})
    def list_customers(
        self, status: str | None = None, tier: str | None = None, industry: str | None = None
    ) -> JsonObject:
        wanted = {"status": status, "tier": tier, "industry": industry}
        found = [
            pick(customer, SUMMARY)
            for customer in self.customers
            if all(not value or customer[key] == value for key, value in wanted.items())
        ]
        return {"customers": found, "total": len(found)}

    @route("/customers/get")
    def customer(self, customer_id: str) -> JsonObject:
        return find(self.customers, "customer_id", customer_id, "Customer")

    @route("/export")
    def export(self, title: str, customer_ids: list[str], summary: str) -> JsonObject:
        report = {
            "title": title,
            "customer_ids": customer_ids,
            "summary": summary,
            "timestamp": self.clock.stamp(),
        }
        self.record("exported_reports", report)
        return {"status": "exported", "report": report}
