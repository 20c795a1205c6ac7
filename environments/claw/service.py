"""The base of all services: routes that are methods, request bodies that pydantic checks, an audit log.

One file in `services/` with one `Service` subclass is a new service. A route is a method whose
parameters are the fields of the request body:

    class Notes(Service):
        prefix = "notes"
        fixtures = {"NOTES_FIXTURES": "notes/meetings.json"}

        @route("/get")
        def get(self, note_id: str) -> JsonObject:
            return find(self.notes, "note_id", note_id, "Note")

Replies, defaults and error shapes are those of claw-eval's servers, which are FastAPI applications
(github.com/claw-eval/claw-eval, mock_services/): a body that does not fit is answered with 422 and
pydantic's error list, something that is not there with 200 and `{"error": ...}`.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_type_hints

from pydantic import BaseModel, Field, ValidationError, create_model

from environments.claw.clock import Clock
from rollout import plugins
from rollout.types import JsonObject, ToolReply

__all__ = [
    "EMPTY_LIST",
    "Crash",
    "Failure",
    "FixtureError",
    "Refusal",
    "Service",
    "file_version",
    "find",
    "pick",
    "read_rows",
    "route",
    "service_class",
]

EMPTY_LIST: Any = Field(default_factory=list)
"""Default of a list-valued parameter of a route."""

F = TypeVar("F", bound=Callable[..., JsonObject])


class FixtureError(ValueError):
    """A fixture can't be used. The message says what is wrong with it, and the remedy."""


class Failure(Exception):
    """Raised by a route to answer 200 with `{"error": message}`, claw-eval's way to say no."""


class Refusal(Exception):
    """Raised by a route to answer with an HTTP error; such calls are not in the audit log."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Crash(Exception):
    """Raised by a route where the original crashes: a 500 that is not in the audit log."""


@dataclass(frozen=True)
class Route:
    """A route: the method behind it, and the model of its request body."""

    method: Callable[..., JsonObject]
    model: type[BaseModel]
    null: JsonObject | None

    def parse(self, body: Any) -> JsonObject:
        """The body's fields with defaults filled in. Raises ValidationError."""
        value = self.null if body is None and self.null is not None else body
        # FastAPI validates with from_attributes, which words the error for a body that is no object.
        return self.model.model_validate(value, from_attributes=True).model_dump()


def route(path: str, null: JsonObject | None = None) -> Callable[[F], F]:
    """Serve POST `<prefix><path>` with the method below.

    `null` is the body that a null body stands for; by default a body is required.
    """

    def mark(method: F) -> F:
        method.__dict__["route"] = (path, null)
        return method

    return mark


def _routes(service: type[Service]) -> Iterable[tuple[str, Route]]:
    for method in vars(service).values():
        if inspect.isfunction(method) and "route" in method.__dict__:
            path, null = method.__dict__["route"]
            yield f"/{service.prefix}{path}", Route(method, _model(method), null)


def _model(method: Callable[..., Any]) -> type[BaseModel]:
    hints = get_type_hints(method)
    parameters = list(inspect.signature(method).parameters.values())[1:]
    fields: dict[str, Any] = {
        p.name: (hints[p.name], ... if p.default is p.empty else p.default) for p in parameters
    }
    return create_model(method.__name__, **fields)


class Service:
    """One mock service in one world. All state is in the instance."""

    prefix: ClassVar[str]
    """First segment of its URL paths."""
    fixtures: ClassVar[Mapping[str, str]] = {}
    """Variable that names a fixture -> where the fixture is below the task's `fixtures/` otherwise."""
    records: ClassVar[tuple[str, ...]] = ()
    """What the audit log lists besides the calls."""
    routes: ClassVar[Mapping[str, Route]] = {}

    def __init_subclass__(cls) -> None:
        cls.routes = {**cls.routes, **dict(_routes(cls))}

    def __init__(self, env: Mapping[str, str], clock: Clock) -> None:
        """`env` holds the fixtures' absolute paths, the service's other settings, and SEED, the world's.

        Raises FixtureError.
        """
        self.env = env
        self.clock = clock
        self._calls: list[JsonObject] = []
        self._records: dict[str, list[JsonObject]] = {name: [] for name in self.records}
        self.remarks: list[str] = []
        """What a reader of the run should know; the agent never sees it."""
        self.load()

    def load(self) -> None:
        """Read the fixtures into plain attributes. Raises FixtureError."""

    def rows(self, variable: str, *required: str) -> list[JsonObject]:
        """A private copy of the JSON list in a fixture, whose objects have the `required` keys."""
        return read_rows(Path(self.env[variable]), required)

    def record(self, name: str, entry: JsonObject) -> None:
        """Add to one of the audit log's `records`."""
        self._records[name].append(copy.deepcopy(entry))

    def audit(self) -> JsonObject:
        """Everything that was done here, under claw-eval's keys."""
        return copy.deepcopy({"calls": self._calls, **self._records})

    def audit_entry(self, endpoint: str, body: JsonObject, reply: JsonObject) -> JsonObject:
        """One call as the audit log keeps it."""
        return {
            "endpoint": endpoint,
            "request_body": body,
            "response_body": reply,
            "timestamp": self.clock.stamp(),
        }

    def handle(self, path: str, body: Any) -> ToolReply:
        """Answer one POST request."""
        if path not in self.routes:
            return ToolReply(status=404, body={"detail": "Not Found"})
        served = self.routes[path]
        try:
            fields = served.parse(body)
        except ValidationError as error:
            return ToolReply(status=422, body={"detail": _details(error, body)})
        try:
            reply = served.method(self, **copy.deepcopy(fields))
        except Failure as failure:
            reply = {"error": str(failure)}
        except Refusal as refusal:
            return ToolReply(status=refusal.status, body={"detail": refusal.detail})
        except (Crash, OverflowError):
            # Overflow: a date beyond the calendar, such as days_back=10**9.
            return ToolReply(status=500, body={"error": "Internal Server Error"})
        # Copies, so that the reply and its audit entry both stay what the agent saw.
        self._calls.append(copy.deepcopy(self.audit_entry(path, fields, reply)))
        return ToolReply(body=copy.deepcopy(reply))


def _details(error: ValidationError, body: Any) -> list[JsonObject]:
    """The error list of FastAPI's 422 answer."""
    if body is None:
        return [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}]
    return [{**entry, "loc": ["body", *entry["loc"]]} for entry in error.errors(include_url=False)]


@cache
def service_class(kind: str) -> type[Service]:
    """The service in `services/` of this name. Raises UsageError for an unknown one."""
    return plugins.load("environments.claw.services", kind, Service)


def find(rows: Iterable[JsonObject], key: str, wanted: str, noun: str) -> JsonObject:
    """The first row with this key. Raises Failure when there is none."""
    for row in rows:
        if row[key] == wanted:
            return row
    raise Failure(f"{noun} {wanted} not found")


def pick(row: JsonObject, keys: Iterable[str]) -> JsonObject:
    """The part of a row that a list reply shows."""
    return {key: row[key] for key in keys}


def read_rows(path: Path, required: Iterable[str] = ()) -> list[JsonObject]:
    """A fresh copy of the list of objects in a JSON file. Raises FixtureError."""
    try:
        version = file_version(path)
    except OSError as error:
        raise FixtureError(f"{path}: {error.strerror}; write [] into it for an empty one") from None
    rows: list[JsonObject] = pickle.loads(_pickled(path, version, tuple(required)))
    return rows


def file_version(path: Path) -> tuple[int, int]:
    """What changes when a file does: the key under which its content may be kept. Raises OSError."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=1024)
def _pickled(path: Path, version: tuple[int, int], required: tuple[str, ...]) -> bytes:  # noqa: ARG001
    """The file's rows, checked once and kept as a pickle: unpickling is the fastest deep copy."""
    try:
        rows = loads(path.read_text("utf-8"))
    except (JSONDecodeError, UnicodeDecodeError) as error:
        raise FixtureError(f"{path}: not JSON ({error}); correct it") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FixtureError(f"{path}: must be a JSON list of objects")
    for number, row in enumerate(rows):
        if missing := [key for key in required if key not in row]:
            raise FixtureError(f"{path}: [{number}]: add {', '.join(map(repr, missing))}")
    return pickle.dumps(rows)
