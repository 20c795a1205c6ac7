"""Products in stock, and orders for more."""

from __future__ import annotations

from environments.claw.service import Service, find, route
from rollout.types import JsonObject


class Inventory(Service):
    prefix = "inventory"
    fixtures = {"INVENTORY_FIXTURES": "inventory/products.json"}
    records = ("orders",)

    def load(self) -> None:
        self.products = self.rows("INVENTORY_FIXTURES", "product_id", "category")

    @route("/products", null={})
    def list_products(self, category: str | None = None) -> JsonObject:
        found = [p for p in self.products if not category or p["category"] == category]
        return {"products": found, "total": len(found)}

    @route("/products/get")
    def product(self, product_id: str) -> JsonObject:
        return find(self.products, "product_id", product_id, "Product")

    @route("/orders/create")
    def order(self, product_id: str, quantity: int, supplier: str | None = None) -> JsonObject:
        order = {
            "product_id": product_id,
            "quantity": quantity,
            "supplier": supplier,
            "timestamp": self.clock.stamp(),
        }
        self.record("orders", order)
        return {"status": "created", "order": order}
