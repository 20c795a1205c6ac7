"""Transactions, and expense reports made of them."""

from __future__ import annotations

from environments.claw.service import Service, find, route
from rollout.types import JsonObject


class Finance(Service):
    prefix = "finance"
    fixtures = {"FINANCE_FIXTURES": "finance/transactions.json"}
    records = ("submitted_reports",)

    def load(self) -> None:
        self.transactions = self.rows("FINANCE_FIXTURES", "transaction_id", "date")

    @route("/transactions", null={})
    def list_transactions(
        self, start_date: str | None = None, end_date: str | None = None
    ) -> JsonObject:
        found = [
            transaction
            for transaction in self.transactions
            if (not start_date or transaction["date"] >= start_date)
            and (not end_date or transaction["date"] <= end_date)
        ]
        return {"transactions": found, "total": len(found)}

    @route("/transactions/get")
    def transaction(self, transaction_id: str) -> JsonObject:
        return find(self.transactions, "transaction_id", transaction_id, "Transaction")

    @route("/report/submit")
    def submit(self, title: str, transactions: list[str], total_amount: float) -> JsonObject:
        report = {
            "title": title,
            "transactions": transactions,
            "total_amount": total_amount,
            "timestamp": self.clock.stamp(),
        }
        self.record("submitted_reports", report)
        return {"status": "submitted", "report": report}
