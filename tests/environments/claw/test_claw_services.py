"""Every service: its routes, defaults, answers to what is not there, and audit log."""

from pathlib import Path
from typing import Any

import pytest

from environments.claw.clock import Clock, parse_time
from environments.claw.service import FixtureError, Service, service_class
from rollout import plugins

NOW = "2026-03-02T09:00:00+00:00"
KINDS = plugins.available("environments.claw.services")

MAIL = {"message_id": "m1", "from": "a", "subject": "s", "date": "2026-03-01T12:00:00Z"}
MAIL |= {"is_read": False, "labels": []}
EVENT = {"event_id": "e1", "title": "Review", "start_time": "2026-03-02T10:00:00Z"}
EVENT |= {"end_time": "2026-03-02T11:00:00Z", "attendees": ["ann@example.com"]}
TODO = {"task_id": "t1", "title": "Call", "status": "pending", "priority": "low", "tags": []}
PERSON = {"contact_id": "c1", "name": "张伟", "department": "销售部"}
CUSTOMER = {"customer_id": "k1", "name": "Acme", "contact_person": "Jo", "tier": "gold"}
CUSTOMER |= {"status": "active", "industry": "steel", "annual_revenue": 5}
TICKET = {"ticket_id": "h1", "title": "VPN", "reporter": "Jo", "department": "IT"}
TICKET |= {"priority": "low", "status": "open", "created_at": "2026-03-01", "description": "long"}
PRODUCT = {"product_id": "p1", "name": "Bolt", "category": "parts", "stock": 3}
ARTICLE = {"article_id": "a1", "title": "Reset a password", "category": "it", "tags": ["login"]}
ARTICLE |= {"last_updated": "2025-01-01", "views": 1, "content": "Press the red button. " * 10}
NOTE = {"note_id": "n1", "title": "Kickoff", "created_at": "2026-02-01", "participants": ["Jo"]}
NOTE |= {"duration_minutes": 30, "content": "We start."}
NEWS = {"article_id": "r1", "title": "Chips", "source": "Wire", "category": "tech"}
NEWS |= {"published_at": "2026-03-01", "summary": "short", "word_count": 9, "content": "long"}
LINK = {"integration_id": "i1", "name": "Pay", "service": "pay", "status": "active"}
LINK |= {"last_verified": "2026-01-01", "monthly_calls": 1, "error_rate": 0.1, "secret": "k"}
JOB = {"job_id": "j1", "name": "Backup", "cron_expression": "0 2 * * *", "enabled": True}
JOB |= {"last_status": "failed", "execution_history": [{"run": 1}, {"run": 2}]}
RESULT = {"url": "http://x", "title": "X", "snippet": "About x", "keywords": ["cloud outage"]}
PAGE = {"url": "http://x", "title": "X", "content": "Down since 14:30"}

ROWS: dict[str, tuple[list[dict[str, Any]], ...]] = {
    "gmail": ([MAIL],),
    "calendar": ([EVENT],),
    "todo": ([TODO],),
    "contacts": ([PERSON],),
    "crm": ([CUSTOMER],),
    "finance": ([{"transaction_id": "x1", "date": "2026-02-10", "amount": 5}],),
    "helpdesk": ([TICKET],),
    "inventory": ([PRODUCT],),
    "kb": ([ARTICLE],),
    "notes": ([NOTE],),
    "rss": ([NEWS],),
    "config": ([LINK],),
    "scheduler": ([JOB],),
    "web": ([RESULT], [PAGE]),
}


def ok(service: Service, path: str, /, **body: Any) -> Any:
    reply = service.handle(path, body)
    assert reply.status == 200, reply
    return reply.body


# Reads: path, body, and what part of the reply must be.
READS = [
    ("gmail", "/gmail/messages", {}, {"messages": [MAIL], "total": 1}),
    ("gmail", "/gmail/messages", {"max_results": 0}, {"messages": [], "total": 0}),
    ("gmail", "/gmail/messages/get", {"message_id": "m1"}, MAIL),
    ("calendar", "/calendar/events", {"date": "2026-03-02"}, {"events": [EVENT], "total": 1}),
    ("calendar", "/calendar/events", {"date": "2026-03-01", "days": 2}, {"total": 1}),
    ("calendar", "/calendar/events", {"date": "2026-03-03"}, {"events": [], "total": 0}),
    ("calendar", "/calendar/events/get", {"event_id": "e1"}, EVENT),
    ("calendar", "/calendar/user_events", {"user": "ann", "date": "2026-03-02"}, {"total": 1}),
    ("calendar", "/calendar/user_events", {"user": "bo", "date": "2026-03-02"}, {"user": "bo"}),
    ("todo", "/todo/tasks", {}, {"tasks": [TODO], "total": 1}),
    ("todo", "/todo/tasks", {"status": "done"}, {"tasks": [], "total": 0}),
    ("contacts", "/contacts/search", {"query": "张"}, {"contacts": [PERSON], "total": 1}),
    ("contacts", "/contacts/search", {"query": "张", "department": "IT"}, {"total": 0}),
    ("contacts", "/contacts/get", {"contact_id": "c1"}, PERSON),
    ("crm", "/crm/customers", {"tier": "gold"}, {"customers": [CUSTOMER], "total": 1}),
    ("crm", "/crm/customers", {"industry": "food"}, {"customers": [], "total": 0}),
    ("crm", "/crm/customers/get", {"customer_id": "k1"}, CUSTOMER),
    ("finance", "/finance/transactions", {"start_date": "2026-02-11"}, {"total": 0}),
    ("finance", "/finance/transactions", {"end_date": "2026-02-10"}, {"total": 1}),
    ("finance", "/finance/transactions/get", {"transaction_id": "x1"}, {"amount": 5}),
    ("helpdesk", "/helpdesk/tickets", {}, {"total": 1}),
    ("helpdesk", "/helpdesk/tickets", {"status": "closed"}, {"tickets": [], "total": 0}),
    ("helpdesk", "/helpdesk/tickets/get", {"ticket_id": "h1"}, TICKET),
    ("inventory", "/inventory/products", {"category": "parts"}, {"products": [PRODUCT]}),
    ("inventory", "/inventory/products", {"category": "food"}, {"total": 0}),
    ("inventory", "/inventory/products/get", {"product_id": "p1"}, PRODUCT),
    ("kb", "/kb/search", {"query": "password"}, {"total": 1}),
    ("kb", "/kb/search", {"query": "password", "category": "hr"}, {"articles": [], "total": 0}),
    ("kb", "/kb/search", {"query": "假"}, {"articles": [], "total": 0}),
    ("kb", "/kb/articles/get", {"article_id": "a1"}, ARTICLE),
    ("notes", "/notes/list", {}, {"total": 1}),
    ("notes", "/notes/get", {"note_id": "n1"}, NOTE),
    ("rss", "/rss/articles", {"source": "Wire"}, {"total": 1}),
    ("rss", "/rss/articles", {"category": "food"}, {"articles": [], "total": 0}),
    ("rss", "/rss/articles/get", {"article_id": "r1"}, NEWS),
    ("config", "/config/integrations", {"status": "active"}, {"total": 1}),
    ("config", "/config/integrations/get", {"integration_id": "i1"}, {"secret": "k"}),
    ("scheduler", "/scheduler/jobs", {"status": "failed", "enabled": True}, {"total": 1}),
    ("scheduler", "/scheduler/jobs", {"tag": "nightly"}, {"jobs": [], "total": 0}),
    ("scheduler", "/scheduler/jobs/get", {"job_id": "j1"}, JOB),
    (
        "scheduler",
        "/scheduler/jobs/history",
        {"job_id": "j1", "limit": 1},
        {"history": [{"run": 1}], "total": 2},
    ),
    ("web", "/web/search", {"query": "Outage?"}, {"total": 1, "query": "Outage?"}),
    ("web", "/web/search", {"query": "weather"}, {"results": [], "total": 0}),
    ("web", "/web/fetch", {"url": "http://x"}, {"status_code": 200, "fetched_at": NOW}),
    ("web", "/web/fetch", {"url": "http://y"}, {"status_code": 404, "content": None}),
]


@pytest.mark.parametrize(("kind", "path", "body", "part"), READS)
def test_reads(open_service, kind, path, body, part):
    reply = ok(open_service(kind, *ROWS[kind]), path, **body)
    for key, value in part.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            assert len(reply[key]) == len(value)
            assert reply[key][0].items() <= value[0].items()
        else:
            assert reply[key] == value


# Writes: path, body, the status word, the audit key, and part of the newest entry under it.
WRITES = [
    (
        "gmail",
        "/gmail/send",
        {"to": "a", "subject": "s", "body": "b"},
        "sent",
        "sent_messages",
        {"to": "a", "subject": "s", "body": "b", "timestamp": NOW},
    ),
    (
        "gmail",
        "/gmail/drafts/save",
        {"to": "a", "subject": "s", "body": "b"},
        "draft_saved",
        "drafts",
        {"reply_to_message_id": None, "timestamp": NOW},
    ),
    (
        "calendar",
        "/calendar/events/create",
        {"title": "T", "start_time": "2026-03-02T15:00:00Z", "end_time": "2026-03-02T16:00:00Z"},
        "created",
        "created_events",
        {"event_id": "evt_002", "attendees": [], "location": "", "recurring": False},
    ),
    ("calendar", "/calendar/events/delete", {"event_id": "e1"}, "deleted", "deleted", EVENT),
    (
        "todo",
        "/todo/tasks/update",
        {"task_id": "t1", "status": "done"},
        "updated",
        "updated_tasks",
        {**TODO, "status": "done"},
    ),
    ("todo", "/todo/tasks/delete", {"task_id": "t1"}, "deleted", "deleted", TODO),
    (
        "contacts",
        "/contacts/send_message",
        {"contact_id": "nobody", "message": "hi"},
        "sent",
        "sent_messages",
        {"contact_id": "nobody", "message": "hi", "timestamp": NOW},
    ),
    (
        "crm",
        "/crm/export",
        {"title": "T", "customer_ids": ["k1"], "summary": "S"},
        "exported",
        "exported_reports",
        {"customer_ids": ["k1"], "timestamp": NOW},
    ),
    (
        "finance",
        "/finance/report/submit",
        {"title": "T", "transactions": ["x1"], "total_amount": "12.5"},
        "submitted",
        "submitted_reports",
        {"total_amount": 12.5},
    ),
    (
        "helpdesk",
        "/helpdesk/tickets/update",
        {"ticket_id": "h1", "priority": "high", "tags": ["vpn"]},
        "updated",
        "updated_tickets",
        {"priority": "high", "tags": ["vpn"], "status": "open"},
    ),
    (
        "helpdesk",
        "/helpdesk/tickets/close",
        {"ticket_id": "h1", "resolution": "fixed"},
        "closed",
        "closed",
        {"status": "closed", "resolution": "fixed"},
    ),
    (
        "inventory",
        "/inventory/orders/create",
        {"product_id": "p1", "quantity": "3"},
        "created",
        "orders",
        {"quantity": 3, "supplier": None, "timestamp": NOW},
    ),
    (
        "kb",
        "/kb/articles/update",
        {"article_id": "a1", "content": "New"},
        "updated",
        "updates",
        {"article_id": "a1", "timestamp": NOW},
    ),
    (
        "notes",
        "/notes/share",
        {"note_id": "n1", "recipients": ["Jo"]},
        "shared",
        "shared",
        {"recipients": ["Jo"], "timestamp": NOW},
    ),
    (
        "rss",
        "/rss/publish",
        {"title": "T", "content": "C"},
        "published",
        "published",
        {"recipients": [], "timestamp": NOW},
    ),
    (
        "config",
        "/config/integrations/update",
        {"integration_id": "i1", "status": "off", "notes": ""},
        "updated",
        "updates",
        {"changes": {"integration_id": "i1", "status": "off", "notes": ""}},
    ),
    (
        "config",
        "/config/notify",
        {"to": "a", "subject": "s", "body": "b"},
        "sent",
        "notifications",
        {"to": "a", "timestamp": NOW},
    ),
    (
        "scheduler",
        "/scheduler/jobs/create",
        {"name": "N", "cron_expression": "* * * * *", "action": "run"},
        "created",
        "created_jobs",
        {"job_id": "JOB-002", "enabled": True, "tags": [], "created_at": NOW},
    ),
    (
        "scheduler",
        "/scheduler/jobs/update",
        {"job_id": "j1", "enabled": False},
        "updated",
        "updated_jobs",
        {"enabled": False, "name": "Backup"},
    ),
    ("scheduler", "/scheduler/jobs/delete", {"job_id": "j1"}, "deleted", "deleted_jobs", JOB),
    (
        "web",
        "/web/notify",
        {"channel": "sms", "message": "m"},
        "sent",
        "notifications",
        {"recipients": [], "timestamp": NOW},
    ),
]


@pytest.mark.parametrize(("kind", "path", "body", "status", "key", "part"), WRITES)
def test_writes(open_service, kind, path, body, status, key, part):
    service = open_service(kind, *ROWS[kind])
    assert ok(service, path, **body)["status"] == status
    audit = service.audit()
    assert audit[key][-1].items() >= part.items()
    assert [call["endpoint"] for call in audit["calls"]] == [path]
    assert audit["calls"][0]["response_body"]["status"] == status


LOOKUPS = [
    (kind, path, field)
    for kind in ROWS
    for path, route in service_class(kind).routes.items()
    for field in list(route.model.model_fields)[:1]
    if field.endswith("_id") and not path.endswith(("/send_message", "/orders/create", "/share"))
]


@pytest.mark.parametrize(("kind", "path", "field"), LOOKUPS)
def test_what_is_not_there_is_an_error_in_a_good_reply(open_service, kind, path, field):
    service = open_service(kind, *ROWS[kind])
    required = {
        name: [] if "list" in str(info.annotation) else "x"
        for name, info in service.routes[path].model.model_fields.items()
        if info.is_required()
    }
    reply = service.handle(path, {**required, field: "zz"})
    assert reply.status == 200
    assert reply.body["error"].endswith(" zz not found")
    assert service.audit()["calls"][0]["response_body"] == reply.body


@pytest.mark.parametrize("kind", KINDS)
def test_every_service_has_its_own_prefix_and_routes(kind):
    service = service_class(kind)
    assert service.prefix == kind.partition("_")[0]
    assert service.routes
    assert all(path.startswith(f"/{service.prefix}/") for path in service.routes)


def test_audit_keeps_the_body_with_defaults_and_no_extras(open_service):
    service = open_service("gmail", [MAIL])
    service.handle("/gmail/messages", {"days_back": "3", "sender": "ann"})
    entry = service.audit()["calls"][0]
    assert entry["request_body"] == {"days_back": 3, "max_results": 20}
    assert entry["timestamp"] == NOW


def test_a_bad_body_is_answered_as_fastapi_does(open_service):
    service = open_service("gmail", [MAIL])
    reply = service.handle("/gmail/send", {"to": 1, "subject": "s"})
    assert reply.status == 422
    assert reply.body == {
        "detail": [
            {
                "type": "string_type",
                "loc": ["body", "to"],
                "msg": "Input should be a valid string",
                "input": 1,
            },
            {
                "type": "missing",
                "loc": ["body", "body"],
                "msg": "Field required",
                "input": {"to": 1, "subject": "s"},
            },
        ]
    }
    assert service.audit()["calls"] == []


def test_a_list_item_of_the_wrong_type_is_named(open_service):
    service = open_service("notes", [NOTE])
    reply = service.handle("/notes/share", {"note_id": "n1", "recipients": ["a", 1]})
    assert reply.body["detail"][0]["loc"] == ["body", "recipients", 1]


def test_a_null_body_means_defaults_on_list_routes_only(open_service):
    service = open_service("gmail", [MAIL])
    assert service.handle("/gmail/messages", None).body["total"] == 1
    reply = service.handle("/gmail/send", None)
    assert reply.body == {
        "detail": [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": None}]
    }
    calendar = open_service("calendar", [EVENT])
    assert calendar.handle("/calendar/events", None).body["total"] == 1


def test_a_body_that_is_no_object(open_service):
    reply = open_service("gmail", [MAIL]).handle("/gmail/send", ["x"])
    assert reply.status == 422
    assert reply.body["detail"][0]["type"] == "model_attributes_type"
    assert reply.body["detail"][0]["loc"] == ["body"]


def test_unknown_paths_audit_and_reset_are_not_found(open_service):
    service = open_service("gmail", [MAIL])
    for path in ("/gmail/nope", "/gmail/audit", "/gmail/reset", "/other"):
        reply = service.handle(path, {})
        assert (reply.status, reply.body) == (404, {"detail": "Not Found"})


def test_a_date_beyond_the_calendar_is_a_server_error(open_service):
    assert (
        open_service("gmail", [MAIL]).handle("/gmail/messages", {"days_back": 10**9}).status == 500
    )


def test_replies_and_audit_stay_what_the_agent_saw(open_service):
    service = open_service("todo", [TODO])
    created = ok(service, "/todo/tasks/create", title="New")
    ok(service, "/todo/tasks/update", task_id="todo_002", title="Changed")
    assert created["task"]["title"] == "New"
    assert service.audit()["calls"][0]["response_body"]["task"]["title"] == "New"
    service.audit()["calls"].clear()
    assert len(service.audit()["calls"]) == 2


def test_writes_are_seen_by_later_reads(open_service):
    calendar = open_service("calendar", [EVENT])
    times = {"start_time": "2026-03-02T08:00:00", "end_time": "2026-03-02T08:30:00"}
    ok(calendar, "/calendar/events/create", title="Early", **times)
    ok(calendar, "/calendar/events/create", title="Bad", start_time="soon", end_time="later")
    listed = ok(calendar, "/calendar/events", date="2026-03-02")["events"]
    assert [event["title"] for event in listed] == ["Early", "Review"]
    kb = open_service("kb", [ARTICLE])
    ok(kb, "/kb/articles/update", article_id="a1", content="New")
    article = ok(kb, "/kb/articles/get", article_id="a1")
    assert (article["content"], article["last_updated"]) == ("New", "2026-03-02")


def test_calendar_says_which_date_is_none(open_service):
    calendar = open_service("calendar", [EVENT])
    for path, more in (("/calendar/events", {}), ("/calendar/user_events", {"user": "a"})):
        assert ok(calendar, path, date="2 March", **more) == {
            "error": "Invalid date format: 2 March"
        }


def test_list_replies_hide_what_only_a_get_shows(open_service):
    listed = ok(open_service("config", [LINK]), "/config/integrations")["integrations"]
    assert "secret" not in listed[0]
    assert (
        "description"
        not in ok(open_service("helpdesk", [TICKET]), "/helpdesk/tickets")["tickets"][0]
    )
    article = ok(open_service("kb", [ARTICLE]), "/kb/search", query="reset")["articles"][0]
    assert article["snippet"] == ARTICLE["content"][:150] + "..."


def test_feeds_are_made_of_the_articles(open_service):
    news = [NEWS, {**NEWS, "category": "law"}, {**NEWS, "source": "Post"}]
    service = open_service("rss", news)
    assert ok(service, "/rss/feeds") == {
        "feeds": [
            {"source": "Wire", "categories": ["tech", "law"], "article_count": 2},
            {"source": "Post", "categories": ["tech"], "article_count": 1},
        ],
        "total": 2,
    }
    assert ok(service, "/rss/feeds", category="law")["total"] == 1


def test_search_ranks_by_shared_words(open_service):
    results = [
        {**RESULT, "url": "http://one", "keywords": ["cloud"]},
        {**RESULT, "url": "http://two", "keywords": ["cloud outage", "支付故障"]},
    ]
    service = open_service("web", results, [])
    found = ok(service, "/web/search", query="Cloud outage")["results"]
    assert [result["url"] for result in found] == ["http://two", "http://one"]
    assert found[0]["source"] == ""
    chinese = ok(service, "/web/search", query="支付")["results"]
    assert [result["url"] for result in chinese] == ["http://two"]


def test_a_page_may_be_an_error(open_service):
    pages = [{"url": "http://x", "status_code": 503}]
    reply = ok(open_service("web", [], pages), "/web/fetch", url="http://x")
    assert reply == {"status_code": 503, "url": "http://x", "error": "HTTP 503", "content": None}


def test_ocr_reads_one_text_or_several(tmp_path: Path):
    (tmp_path / "ocr").mkdir()
    (tmp_path / "ocr" / "a.txt").write_text("first")
    (tmp_path / "ocr" / "b.txt").write_text("second")
    env = {"OCR_FIXTURES": str(tmp_path), "OCR_FILENAME": "a.txt"}
    one = service_class("ocr")(env, Clock())
    assert ok(one, "/ocr/extract", image_path="any.png") == {
        "text": "first",
        "confidence": 0.95,
        "language": "mixed",
    }
    assert set(one.audit()["calls"][0]) == {"endpoint", "request_body", "timestamp"}
    assert one.handle("/ocr/extract", None).status == 422
    both = service_class("ocr")({**env, "OCR_FILENAMES": "a.txt, b.txt"}, Clock())
    text = ok(both, "/ocr/extract")["text"]
    assert text == "--- Document 1: a.txt ---\nfirst\n\n--- Document 2: b.txt ---\nsecond"
    with pytest.raises(FixtureError, match=r"c\.txt: No such file"):
        service_class("ocr")({**env, "OCR_FILENAME": "c.txt"}, Clock())


def test_caption_is_the_tasks_own(tmp_path: Path):
    (tmp_path / "caption.txt").write_text("A red door")
    service = service_class("caption")({"CAPTION_FIXTURES": str(tmp_path)}, Clock())
    assert ok(service, "/caption/describe") == {"caption": "A red door", "confidence": 0.92}
    assert "response_body" not in service.audit()["calls"][0]


def test_documents_serves_texts_below_its_folder_only(tmp_path: Path):
    base = tmp_path / "documents"
    base.mkdir()
    (base / "a.md").write_text("# Title")
    (base / "a.bin").write_bytes(b"\0")
    (tmp_path / "verify.py").write_text("secret")
    service = service_class("documents")({"DOCUMENTS_BASE_DIR": str(base)}, Clock())
    reply = ok(service, "/documents/extract_text", path="a.md")
    assert reply == {"path": "a.md", "page_count": 1, "pages_returned": 1, "text": "# Title"}
    assert service.audit()["calls"][0]["response_body"]["text_length"] == 7
    for path, status in {
        "../verify.py": 400,
        str(tmp_path / "verify.py"): 400,
        "a.bin": 400,
        "b.md": 404,
        "a\0.md": 404,
        "x" * 5000: 404,
    }.items():
        assert service.handle("/documents/extract_text", {"path": path}).status == status
    assert len(service.audit()["calls"]) == 1


def test_documents_of_a_whole_task_are_pdfs_only(tmp_path: Path):
    (tmp_path / "task.yaml").write_text("task_id: x")
    service = service_class("documents")({"DOCUMENTS_BASE_DIR": str(tmp_path)}, Clock())
    reply = service.handle("/documents/extract_text", {"path": "task.yaml"})
    assert (reply.status, reply.body) == (400, {"detail": "Only PDF files are supported"})


def test_without_a_clock_dates_follow_the_real_time(open_service):
    clock = Clock()
    old = {**MAIL, "message_id": "m0", "date": "2026-02-27T12:00:00Z"}
    mail = ok(open_service("gmail", [MAIL, old], clock=clock), "/gmail/messages")["messages"]
    assert [m["message_id"] for m in mail] == ["m1", "m0"]
    age = clock.now() - parse_time(mail[0]["date"])
    assert 86_400 <= age.total_seconds() < 86_402
    event = ok(
        open_service("calendar", [EVENT], clock=clock), "/calendar/events/get", event_id="e1"
    )
    start = parse_time(event["start_time"])
    assert (start.date() - clock.now().date()).days == 1
    assert (start.hour, event["end_time"][11:13]) == (10, "11")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("{}", "must be a JSON list of objects"),
        ("[1]", "must be a JSON list of objects"),
        ('[{"task_id": "t"}]', r"\[0\]: add 'status'"),
    ],
)
def test_a_bad_fixture_is_named(tmp_path: Path, content: str, message: str):
    path = tmp_path / "tasks.json"
    path.write_text(content)
    with pytest.raises(FixtureError, match=message) as caught:
        service_class("todo")({"TODO_FIXTURES": str(path)}, Clock())
    assert str(path) in str(caught.value)


def test_a_changed_fixture_is_read_again(tmp_path: Path):
    path = tmp_path / "tasks.json"
    path.write_text("[]")
    env = {"TODO_FIXTURES": str(path)}
    assert ok(service_class("todo")(env, Clock()), "/todo/tasks")["total"] == 0
    path.write_text('[{"task_id": "t", "status": "done"}]')
    assert ok(service_class("todo")(env, Clock()), "/todo/tasks")["total"] == 1
