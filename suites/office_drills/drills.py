"""Drills: short office tasks of two or three tool calls, any number of them, each given by its number."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from environments.claw.service import service_class
from environments.claw.task import ClawTask, Endpoint, ServiceSpec
from rollout.types import JsonObject, Record, Solution, Step, ToolSpec
from suites.office_drills.office import DEPARTMENTS, Office

__all__ = ["FAMILIES", "DrillTask", "Expected", "drill"]

CLOCK = "2026-03-02T09:00:00+00:00"


class Expected(Record, frozen=True, kw_only=True):
    """A record that a service's audit log must have, the only one of its kind."""

    service: str
    records: str
    fields: JsonObject


class DrillTask(ClawTask, frozen=True, kw_only=True):
    """A task that is graded by what it expects."""

    expected: tuple[Expected, ...] = ()
    answer: str = ""
    """What the final message must say."""
    rows: dict[str, list[JsonObject]] = {}
    """What a service starts with."""

    def placed(self, folder: Path) -> DrillTask:
        """The task with its rows as fixtures in a folder."""
        return msgspec.structs.replace(
            self, services=tuple(self._placed(spec, folder) for spec in self.services)
        )

    def _placed(self, spec: ServiceSpec, folder: Path) -> ServiceSpec:
        path = folder / f"{spec.name}.json"
        path.write_bytes(msgspec.json.encode(self.rows.get(spec.name, [])))
        (variable,) = service_class(spec.kind).fixtures
        return msgspec.structs.replace(spec, env={variable: str(path)})


class Tool(NamedTuple):
    description: str
    path: str
    parameters: dict[str, JsonObject]


TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "integer"}
LIST: JsonObject = {"type": "array", "items": TEXT}

TOOLS = {
    "contacts_search": Tool("Find people", "/contacts/search", {"query": TEXT, "department": TEXT}),
    "gmail_send": Tool("Send mail", "/gmail/send", {"to": TEXT, "subject": TEXT, "body": TEXT}),
    "list_products": Tool("List products", "/inventory/products", {"category": TEXT}),
    "create_order": Tool(
        "Order a product", "/inventory/orders/create", {"product_id": TEXT, "quantity": NUMBER}
    ),
    "list_events": Tool("List a day's events", "/calendar/events", {"date": TEXT}),
    "delete_event": Tool("Delete an event", "/calendar/events/delete", {"event_id": TEXT}),
    "create_event": Tool(
        "Create an event",
        "/calendar/events/create",
        {"title": TEXT, "start_time": TEXT, "end_time": TEXT},
    ),
    "list_expenses": Tool(
        "List expenses", "/finance/transactions", {"start_date": TEXT, "end_date": TEXT}
    ),
    "file_report": Tool(
        "File an expense report",
        "/finance/report/submit",
        {"title": TEXT, "transactions": LIST, "total_amount": NUMBER},
    ),
}


class Draft(NamedTuple):
    """A drill without what all have in common."""

    prompt: str
    rows: dict[str, list[JsonObject]]
    steps: tuple[Step, ...]
    expected: tuple[Expected, ...]
    said: str
    answer: str


def drill(split: str, family: str, number: int) -> DrillTask:
    """The drill of this number: the same one each time."""
    dice = random.Random(f"{split}/{family}/{number}")
    draft = FAMILIES[family](Office(split, dice), dice)
    tools = tuple(dict.fromkeys(step.call for step in draft.steps))
    services = tuple(dict.fromkeys(TOOLS[tool].path.split("/")[1] for tool in tools))
    return DrillTask(
        id=f"{family}-{split}-{number:05d}",
        prompt=draft.prompt,
        tools=tuple(_spec(name) for name in tools),
        category=family,
        tags=(split,),
        timeout=120.0,
        max_turns=6,
        reference=Solution(name="reference", steps=draft.steps, answer=draft.answer),
        folder=family,
        services=tuple(ServiceSpec(name=name, kind=name) for name in services),
        rows=draft.rows,
        endpoints={tool: Endpoint(path=TOOLS[tool].path) for tool in tools},
        clock=CLOCK,
        expected=draft.expected,
        answer=draft.said,
        fingerprint=f"office_drills 6 {split} {family} {number}",
    )


def _spec(name: str) -> ToolSpec:
    tool = TOOLS[name]
    schema = {"type": "object", "properties": tool.parameters, "required": list(tool.parameters)}
    return ToolSpec(
        name=name, description=tool.description, input_schema=schema, group=tool.path.split("/")[1]
    )


def _mail(office: Office, dice: random.Random) -> Draft:
    """Find the right one of two namesakes, and mail them a figure."""
    name, amount = office.name(), office.number()
    subject = dice.choice(("total", "budget", "invoice", "price"))
    people = [
        {
            "name": name,
            "department": department,
            "email": f"{office.name()}{office.number()}@office.example",
            "contact_id": f"c{office.number()}",
        }
        for department in dice.sample(DEPARTMENTS, 2)
    ]
    _, person = _pick(people, dice)
    department = person["department"]
    prompt = dice.choice(
        (
            f"Mail {name} from {department} the {subject}: {amount}.",
            f"The {subject} is {amount}. Mail it to {name} from {department}.",
            f"Let {name} from {department} know by mail that the {subject} is {amount}.",
        )
    )
    sent = {"to": person["email"], "subject": subject, "body": str(amount)}
    return Draft(
        prompt,
        {"contacts": people},
        (
            _step("contacts_search", query=name, department=department),
            _step("gmail_send", **{**sent, "to": "{{1.contacts.0.email}}"}),
        ),
        (Expected(service="gmail", records="sent_messages", fields=sent),),
        name,
        f"Mailed {name} the {subject}.",
    )


def _order(office: Office, dice: random.Random) -> Draft:
    """Find the product of a category, and order some of it."""
    category, amount, product = office.name(), office.number(), f"p{office.number()}"
    rows: list[JsonObject] = [
        {"category": category, "product_id": product, "quantity": dice.randrange(10)},
        {"category": office.name(), "product_id": f"p{office.number()}", "quantity": 1},
    ]
    prompt = dice.choice(
        (
            f"Order {amount} of category {category}.",
            f"We need category {category}. Order {amount}.",
            f"Category {category} is running out. Order {amount}.",
        )
    )
    order = {"product_id": product, "quantity": amount}
    return Draft(
        prompt,
        {"inventory": rows},
        (
            _step("list_products", category=category),
            _step("create_order", **{**order, "product_id": "{{1.products.0.product_id}}"}),
        ),
        (Expected(service="inventory", records="orders", fields=order),),
        str(amount),
        f"Ordered {amount} of {category}.",
    )


def _meeting(office: Office, dice: random.Random) -> Draft:
    """Move a meeting: find it, delete it, create it at the new hour."""
    day, hour = office.day(), dice.randrange(13, 19)
    events: list[JsonObject] = [
        {
            "title": office.name(),
            "event_id": f"e{office.number()}",
            "start_time": f"{day}T{start:02d}:00:00Z",
            "end_time": f"{day}T{start + 1:02d}:00:00Z",
        }
        for start in (9, 11)
    ]
    index, event = _pick(events, dice)
    title = event["title"]
    prompt = dice.choice(
        (
            f"Move the meeting {title} on {day} to {hour}:00.",
            f"On {day} there is a meeting {title}. Move it to {hour}:00.",
            f"The meeting {title} must start at {hour}:00 on {day}. Move it.",
        )
    )
    created = {
        "title": title,
        "start_time": f"{day}T{hour}:00:00Z",
        "end_time": f"{day}T{hour + 1}:00:00Z",
    }
    deleted = {"event_id": event["event_id"]}
    return Draft(
        prompt,
        {"calendar": events},
        (
            _step("list_events", date=day),
            _step("delete_event", event_id=f"{{{{1.events.{index}.event_id}}}}"),
            _step("create_event", **created),
        ),
        (
            Expected(service="calendar", records="deleted", fields=deleted),
            Expected(service="calendar", records="created_events", fields=created),
        ),
        title,
        f"Moved {title} to {hour}:00.",
    )


def _expense(office: Office, dice: random.Random) -> Draft:
    """Find the expense of a day, and file a report with its id and amount."""
    day, title = office.day(), office.name()
    expenses: list[JsonObject] = [
        {
            "date": date,
            "title": name,
            "transaction_id": f"t{office.number()}",
            "amount": office.number(),
        }
        for date, name in ((day, title), (office.day(), office.name()))
    ]
    prompt = dice.choice(
        (
            f"File the expense {title} of {day}.",
            f"On {day} I paid for {title}. File that expense.",
            f"The expense {title} is not filed yet, it is of {day}. File it.",
        )
    )
    report = {
        "title": title,
        "transactions": [expenses[0]["transaction_id"]],
        "total_amount": expenses[0]["amount"],
    }
    return Draft(
        prompt,
        {"finance": expenses},
        (
            _step("list_expenses", start_date=day, end_date=day),
            _step(
                "file_report",
                title=title,
                transactions=["{{1.transactions.0.transaction_id}}"],
                total_amount="{{1.transactions.0.amount}}",
            ),
        ),
        (Expected(service="finance", records="submitted_reports", fields=report),),
        title,
        f"Filed {title}.",
    )


FAMILIES: dict[str, Callable[[Office, random.Random], Draft]] = {
    "mail": _mail,
    "order": _order,
    "meeting": _meeting,
    "expense": _expense,
}


def _step(call: str, **arguments: Any) -> Step:
    return Step(call=call, arguments=arguments)


def _pick(rows: Sequence[JsonObject], dice: random.Random) -> tuple[int, JsonObject]:
    index = dice.randrange(len(rows))
    return index, rows[index]
