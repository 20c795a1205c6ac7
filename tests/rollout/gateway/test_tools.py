"""The tool surfaces over real HTTP: REST with real curl, MCP with the official SDK's client."""

import asyncio
import json
import shutil
from base64 import b64decode
from contextlib import asynccontextmanager

import aiohttp
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from mcp import Client
from mcp.shared.exceptions import MCPError

from rollout.gateway.tools import PROTOCOL_VERSIONS, handle_mcp, handle_rest, skills
from rollout.types import Image, Task, ToolReply, ToolSpec

TEXT = """It's "quoted" $HOME `x` \\n 李雷 🎉"""

ADD = ToolSpec(
    name="mail_add",
    description="Add a mail. {braces}",
    group="Mail Box",
    input_schema={
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "Who gets it"},
            "priority": {"type": "integer", "default": 3},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["to", "labels"],
    },
)
LIST = ToolSpec(name="mail_list", description="List mails.", group="Mail Box")
CLOCK = ToolSpec(name="clock", description="The time.")


class Echo:
    """A session whose tools answer with what they were sent."""

    def __init__(self, surface):
        self.task = Task(id="t", prompt="p", tools=(ADD, LIST, CLOCK))
        self.surface = surface
        self.calls = []

    async def read(self, request):
        return await request.read()

    async def call_tool(self, name, arguments, surface):
        self.calls.append((name, arguments, surface))
        if name not in {tool.name for tool in self.task.tools}:
            return ToolReply(status=404, body={"error": f"no tool named {name!r}"})
        status = arguments.get("status", 200) if isinstance(arguments, dict) else 422
        return ToolReply(status=status, body={"got": arguments})


@asynccontextmanager
async def serving(session):
    async def as_rest(request):
        return await handle_rest(request, session)

    async def as_mcp(request):
        return await handle_mcp(request, session)

    app = web.Application()
    app.router.add_route("*", "/e/x/tools", as_rest)
    app.router.add_route("*", "/e/x/tools/{name}", as_rest)
    app.router.add_route("*", "/e/x/mcp", as_mcp)
    async with TestServer(app) as server, aiohttp.ClientSession(server.make_url("/e/x/")) as client:
        yield client, str(server.make_url("/e/x"))


async def rest(client, data, name="mail_add", method="POST"):
    async with client.request(method, f"tools/{name}" if name else "tools", data=data) as reply:
        return reply.status, await reply.json()


async def rpc(client, message, headers=None):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    async with client.post("mcp", data=data, headers=headers) as reply:
        body = await reply.read()
        return reply.status, json.loads(body) if body else None


async def test_rest_forwards_arguments_and_answers_with_the_tools_status():
    session = Echo("skill")
    async with serving(session) as (client, _):
        assert await rest(client, json.dumps({"to": TEXT})) == (200, {"got": {"to": TEXT}})
        assert await rest(client, b'{"status": 429}') == (429, {"got": {"status": 429}})
        assert await rest(client, b"") == (200, {"got": {}})
        assert (await rest(client, b"[1]"))[0] == 422
        assert (await rest(client, b"{}", "nothing"))[0] == 404
    assert [name for name, _, _ in session.calls] == ["mail_add"] * 4 + ["nothing"]
    assert {surface for _, _, surface in session.calls} == {"skill"}


async def test_rest_explains_what_it_cannot_read_and_records_nothing():
    session = Echo("skill")
    async with serving(session) as (client, _):
        for bad in (b'{"to": ', b"to=a", b"\xff"):
            status, body = await rest(client, bad)
            assert (status, "not valid JSON" in body["error"]) == (400, True)
        assert (await rest(client, None, method="GET"))[0] == 405
        assert await rest(client, None, name="", method="GET") == (
            200,
            {"tools": ["mail_add", "mail_list", "clock"]},
        )
    assert session.calls == []


async def test_tools_answer_on_their_own_surface_only():
    async with serving(Echo("mcp")) as (client, _):
        assert (await rest(client, b"{}"))[0] == 404
    async with serving(Echo("skill")) as (client, _):
        assert (await rpc(client, {"jsonrpc": "2.0", "id": 1, "method": "ping"}))[0] == 404


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_works_with_the_official_client(mode):
    session = Echo("mcp")
    async with serving(session) as (_, url), Client(f"{url}/mcp", mode=mode) as client:
        assert client.protocol_version == PROTOCOL_VERSIONS[0]
        assert client.server_info.name == "tools"
        listed = (await client.list_tools()).tools
        assert [(tool.name, tool.description) for tool in listed] == [
            (tool.name, tool.description) for tool in session.task.tools
        ]
        assert listed[0].input_schema == ADD.input_schema
        result = await client.call_tool("mail_add", {"to": TEXT})
        assert (result.is_error, json.loads(result.content[0].text)) == (
            False,
            {"got": {"to": TEXT}},
        )
        assert (await client.call_tool("mail_list", {"status": 500})).is_error is True
        assert (await client.call_tool("nothing", {})).is_error is True
        with pytest.raises(MCPError, match="no method 'resources/list'"):
            await client.list_resources()
    assert [name for name, _, _ in session.calls] == ["mail_add", "mail_list", "nothing"]
    assert {surface for _, _, surface in session.calls} == {"mcp"}


@pytest.mark.parametrize("version", PROTOCOL_VERSIONS)
async def test_mcp_negotiates_the_version(version):
    async with serving(Echo("mcp")) as (client, _):
        ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c"}}
        _, answer = await rpc(client, ask | {"params": params})
        assert answer["result"]["protocolVersion"] == version
        ping = {"jsonrpc": "2.0", "id": "p", "method": "ping"}
        status, answer = await rpc(client, ping, {"MCP-Protocol-Version": version})
        assert (status, answer) == (200, {"jsonrpc": "2.0", "id": "p", "result": {}})


async def test_mcp_offers_its_newest_version_to_strangers():
    async with serving(Echo("mcp")) as (client, _):
        ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
        _, answer = await rpc(client, ask | {"params": {"protocolVersion": "1999-01-01"}})
        assert answer["result"]["protocolVersion"] == PROTOCOL_VERSIONS[0]
        status, answer = await rpc(client, ask, {"MCP-Protocol-Version": "1999-01-01"})
        assert (status, answer["error"]["code"]) == (400, -32600)


async def test_mcp_accepts_notifications_and_has_no_stream():
    async with serving(Echo("mcp")) as (client, _):
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert await rpc(client, note) == (202, None)
        for method in ("GET", "DELETE"):
            async with client.request(method, "mcp") as reply:
                assert reply.status == 405


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (b"{", 400, -32700),
        (7, 200, -32600),
        ({"id": 1, "method": "ping"}, 200, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "nonsense"}, 200, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}, 200, -32602),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": [1]}, 200, -32602),
    ],
)
async def test_mcp_errors_follow_json_rpc(message, status, code):
    async with serving(Echo("mcp")) as (client, _):
        got, answer = await rpc(client, message)
        assert (got, answer["error"]["code"]) == (status, code)


async def test_mcp_answers_batches():
    async with serving(Echo("mcp")) as (client, _):
        ping = {"jsonrpc": "2.0", "method": "ping"}
        status, answers = await rpc(client, [ping | {"id": 1}, ping, ping | {"id": 2}])
        assert (status, [answer["id"] for answer in answers]) == (200, [1, 2])
        status, answer = await rpc(client, [ping | {"id": 1}] * 1001)
        assert (status, answer["error"]["message"]) == (
            400,
            "a batch has 1000 messages at most, this one 1001",
        )


def test_skills_are_one_folder_a_group():
    texts = skills((ADD, LIST, CLOCK), "http://h/tools")
    assert sorted(texts) == ["mail-box/SKILL.md", "tools/SKILL.md"]
    _, front, body = texts["mail-box/SKILL.md"].split("---\n", 2)
    assert yaml.safe_load(front) == {
        "name": "mail-box",
        "description": "How to call the mail-box tools with curl: mail_add, mail_list",
    }
    assert "- `to` (string, required): Who gets it\n" in body
    assert '- `priority` (integer, optional) Schema: `{"default": 3}`' in body
    assert "Add a mail. {braces}" in body
    assert "No arguments." in body


def test_a_skills_description_keeps_to_the_limit():
    many = [ToolSpec(name=f"a_long_name_of_tool_{n}", group="g") for n in range(90)]
    text = skills(many, "u")["g/SKILL.md"]
    assert len(yaml.safe_load(text.split("---\n")[1])["description"]) == 1024


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
async def test_the_documented_command_works_as_it_stands():
    session = Echo("skill")
    async with serving(session) as (_, url):
        text = skills(session.task.tools, f"{url}/tools")["mail-box/SKILL.md"]
        command = text.split("```bash\n")[1].split("```")[0]
        assert await shell(command) == [{"got": {"to": "<to>", "labels": []}}, 200]
        tricky = {"to": TEXT, "status": 422}
        edited = command.replace(
            '{"to": "<to>", "labels": []}', json.dumps(tricky, ensure_ascii=False)
        )
        assert await shell(edited) == [{"got": tricky}, 422]


async def shell(command):
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, stdout=asyncio.subprocess.PIPE
    )
    output = (await process.communicate())[0].decode()
    return [json.loads(line) for line in output.splitlines()]


async def test_an_answer_that_a_client_waits_for_never_goes_missing():
    """Codex waits for ever when the answer to a call carries no id."""
    huge = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "mail_list", '
    huge += b'"arguments": {"n": 1' + b"0" * 5000 + b', "text": "half \\ud83d"}}}'
    async with serving(Echo("mcp")) as (http, _):
        async with http.post("mcp", data=huge) as reply:
            answer = await reply.json()
        assert answer["id"] == 7
        assert "half \ufffd" in answer["result"]["content"][0]["text"]
        odd = {"jsonrpc": "2.0", "id": {"no": "id"}, "method": "ping"}
        async with http.post("mcp", json=odd) as reply:
            assert (await reply.json())["error"]["code"] == -32600


async def test_pictures_come_as_image_content():
    class Camera(Echo):
        async def call_tool(self, name, arguments, surface):
            picture = Image(data=b"\x89PNG", media_type="image/png")
            return ToolReply(body={"url": "x"}, images=(picture, picture))

    async with serving(Camera("mcp")) as (_, url), Client(f"{url}/mcp", mode="legacy") as client:
        text, *pictures = (await client.call_tool("clock", {})).content
    assert json.loads(text.text) == {"url": "x"}
    assert [(p.mime_type, b64decode(p.data)) for p in pictures] == [("image/png", b"\x89PNG")] * 2
