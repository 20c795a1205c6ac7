"""The manifest: written and read, compared on resume, free of keys, and what harnesses first send."""

import json
import subprocess

import msgspec
import pytest

from rollout import manifest as module
from rollout.errors import UsageError
from rollout.first_sent import first_sent, normalise
from rollout.manifest import Code, Manifest, differences
from rollout.types import Call

replace = msgspec.structs.replace


@pytest.fixture
def manifest() -> Manifest:
    return Manifest(
        suite={"name": "claweval", "data": "built-in"},
        tasks={"t1": "aa", "t2": "bb"},
        harness={
            "name": "codex",
            "program": "codex",
            "version": "0.171.0",
            "options": {"slim": True},
        },
        tools="mcp",
        model={"model": "gpt-oss-20b"},
        sampling={"temperature": 1.0},
        sandbox={"kind": "bubblewrap", "limits": {"memory_mb": 4096}},
        seed=0,
        attempts=3,
    )


def call(request: dict, dialect: str = "chat") -> Call:
    body = json.dumps(request).encode()
    return Call(index=0, dialect=dialect, kind="main", request=body, reply=b"{}")


def test_written_and_read(manifest, tmp_path):
    manifest = manifest.amend("t1", call({"messages": [{"role": "system", "content": "Be kind"}]}))
    (tmp_path / "run").mkdir()
    manifest.write(tmp_path / "run")
    assert Manifest.read(tmp_path / "run") == manifest
    manifest.write(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]
    written = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert written["format"] == 1
    assert written["code"]["python"].startswith("3.")
    assert written["first_sent"]["t1"]["system_bytes"] == 7


def test_a_place_that_is_no_good_is_one_line(manifest, tmp_path):
    with pytest.raises(UsageError, match=r"gone/manifest\.json: No such file or directory; mend"):
        manifest.write(tmp_path / "gone")
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(UsageError, match=r"manifest\.json: Is a directory; restore it"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "holds no run: manifest.json is missing"),
        ("{", "manifest.json is damaged"),
        ('{"format": 2}', "has format 2, this version of AnyHarness reads 1"),
        ('{"format": 1, "suite": []}', r"manifest.json is damaged: .*\$\.suite"),
    ],
)
def test_reading_says_what_is_wrong(tmp_path, text, message):
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(UsageError, match=message):
        Manifest.read(tmp_path)


def test_differences_name_the_field(manifest):
    harness = {**manifest.harness, "version": "0.172.0", "options": {"slim": True, "web": False}}
    other = replace(
        manifest, harness=harness, seed=1, tasks={"t1": "aa", "t3": "cc"}, judge={"model": "m"}
    )
    assert [str(difference) for difference in differences(manifest, other)] == [
        "tasks.t2: 'bb' -> None",
        "harness.version: '0.171.0' -> '0.172.0'",
        "seed: 0 -> 1",
        "tasks.t3: None -> 'cc'",
        "harness.options.web: None -> False",
        "judge.model: None -> 'm'",
    ]


def test_what_may_differ_on_resume(manifest):
    other = replace(
        manifest,
        created="2030-01-01T00:00:00+00:00",
        code=replace(manifest.code, commit="other", dirty=True, python="3.99.0", platform="moon"),
        notes=("hm",),
    ).amend("t1", call({}))
    assert differences(manifest, other) == []
    newer = replace(manifest, code=replace(manifest.code, version="9.9"))
    assert [d.field for d in differences(manifest, newer)] == ["code.version"]


def test_differences_survive_the_disk(manifest, tmp_path):
    manifest.write(tmp_path)
    assert differences(Manifest.read(tmp_path), manifest) == []


def test_resuming_with_other_code_is_noted(manifest):
    assert manifest.resumed_by(manifest) is manifest
    other = replace(manifest, code=replace(manifest.code, python="3.99.0"), created="later")
    (note,) = manifest.resumed_by(other).notes
    assert note == f"resumed at later by other code: python: {manifest.code.python!r} -> '3.99.0'"


def test_no_secret_is_written(manifest, tmp_path):
    secretive = replace(
        manifest,
        model={
            "base_url": "https://me:hunter2@example.org/v1?api_key=hunter2&v=1",
            "api_key": "hunter2",
            "headers": [{"Authorization": "Bearer hunter2"}],
            "max_tokens": 5,
            "tokenizer": "x",
        },
    )
    secretive.write(tmp_path)
    assert "hunter2" not in (tmp_path / "manifest.json").read_text()
    read = Manifest.read(tmp_path)
    assert read.model["base_url"] == "https://example.org/v1?api_key=<hidden>&v=1"
    assert (read.model["max_tokens"], read.model["tokenizer"]) == (5, "x")
    assert differences(read, secretive) == []


SYSTEM = "You are an agent."
TOOLS = [{"name": "send", "description": "Sends", "input_schema": {"type": "object"}}]


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (
            "chat",
            {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "x"}]},
        ),
        (
            "chat",
            {"messages": [{"role": "developer", "content": [{"type": "text", "text": SYSTEM}]}]},
        ),
        ("responses", {"instructions": SYSTEM, "input": "x"}),
        (
            "responses",
            {
                "input": [
                    {"role": "developer", "content": [{"type": "input_text", "text": SYSTEM}]},
                    {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
                    {"type": "function_call", "name": "send"},
                ]
            },
        ),
        ("messages", {"system": SYSTEM, "messages": [{"role": "user", "content": "x"}]}),
        ("messages", {"system": [{"type": "text", "text": SYSTEM}], "messages": []}),
    ],
)
def test_the_first_call_in_each_dialect(dialect, body):
    found = first_sent(call({**body, "tools": TOOLS}, dialect))
    plain = first_sent(call({"messages": [{"role": "system", "content": SYSTEM}], "tools": TOOLS}))
    assert found == plain
    assert (found.system_bytes, found.tools) == (len(SYSTEM), 1)
    reordered = [dict(reversed(TOOLS[0].items()))]
    assert first_sent(call({**body, "tools": reordered}, dialect)) == found
    assert first_sent(call(body, dialect)).tools == 0
    assert first_sent(call({**body, "tools": [*TOOLS, *TOOLS]}, dialect)) != found


@pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
@pytest.mark.parametrize(
    "request_body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"messages": [1], "input": [2], "system": 3, "instructions": {}, "tools": 4}',
        b'{"messages": [{"role": "system", "content": [5, {"text": 6}]}], "tools": [null]}',
    ],
)
def test_an_odd_first_call_is_no_error(dialect, request_body):
    odd = Call(index=0, dialect=dialect, kind="main", request=request_body, reply=b"")
    assert first_sent(odd).system_bytes == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "POST http://127.0.0.1:4011/e/Ab3_-x/tools/send",
            "POST http://127.0.0.1:9/e/Zz/tools/send",
        ),
        ("on http://localhost:8000/", "on http://localhost:80/"),
        ("Today is Sunday, November 29, 2026.", "Today is Monday, November 30, 2026."),
        ("[Sun 2026-11-29 13:01 UTC]", "[Mon 2026-11-30 09:59 UTC]"),
        ("at 2026-11-29T13:01:07.123Z", "at 2027-01-01T00:00:00Z"),
        ("cwd /tmp/ep-x1/ws", "cwd /tmp/ep-9/ws"),
        ("in /home/a/.cache/anyharness/sandboxes/x_1/ws", "in /c/anyharness/sandboxes/y2/ws"),
        ("id 0b5c9c0e-8f0e-4f5e-9d0e-0123456789ab", "id 1b5c9c0e-8f0e-4f5e-9d0e-0123456789ab"),
        ("session 0123456789abcdef01", "session fedcba98765432100f"),
    ],
)
def test_what_varies_by_episode_is_normalised(one, other):
    assert normalise(one) == normalise(other) != one


def test_what_does_not_vary_stays():
    text = (
        "Call https://example.org/docs with at most 3 items; see deadbeef, acceded, v0.171.0, 10:1"
    )
    assert normalise(text) == text


def test_a_prompt_that_changes_is_noted_once(manifest):
    first = call({"messages": [{"role": "system", "content": "A"}]})
    other = call({"messages": [{"role": "system", "content": "B"}], "tools": TOOLS})
    manifest = manifest.amend("t1", first)
    assert manifest.amend("t1", first) is manifest
    changed = manifest.amend("t1", other)
    assert changed.notes == (
        "t1: the system prompt and the tool schemas differed between attempts",
    )
    assert changed.amend("t1", other) is changed
    assert changed.first_sent == manifest.first_sent


def test_the_commit_of_a_checkout(tmp_path, monkeypatch):
    def git(*arguments):
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True)

    monkeypatch.setattr(module, "PROJECT", tmp_path)
    assert (Code.here().commit, Code.here().dirty) == ("", False)
    git("init", "-q")
    assert Code.here().commit == ""
    (tmp_path / "file").write_text("1")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    assert len(Code.here().commit) == 40
    assert not Code.here().dirty
    (tmp_path / "file").write_text("2")
    assert Code.here().dirty


def test_the_billing_line_of_claude_code_is_no_part_of_its_prompt():
    def sent(version):
        billing = {"type": "text", "text": f"x-anthropic-billing-header: cc_version={version};"}
        system = [billing, {"type": "text", "text": SYSTEM}]
        skills = [{"role": "system", "content": "Skills: mail"}]
        return first_sent(call({"system": system, "messages": skills}, "messages"))

    assert sent("2.1.197.0f3") == sent("2.1.197.eb2")
    assert sent("1").system_bytes == len(f"{SYSTEM}\nSkills: mail".encode())
