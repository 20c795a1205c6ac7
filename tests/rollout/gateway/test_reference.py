"""The scripted policies, on conversations as different harnesses hold them."""

import json

import pytest

from rollout.errors import UsageError
from rollout.gateway.tools import skills
from rollout.gateway.upstream import ModelRequest
from rollout.gateway.upstreams.noisy_reference import NoisyReference
from rollout.gateway.upstreams.reference import Reference
from rollout.types import Solution, Step, Task, ToolSpec

TRICKY = """It's "quoted" `x` $HOME 李雷"""

SOLUTION = Solution(
    name="reference",
    steps=(
        Step(call="mail_list", arguments={"folder": "in"}),
        Step(call="mail_send", arguments={"to": "{{1.items.0.from}}", "body": TRICKY}, retry=1),
    ),
    answer="Sent {{2.id}}.",
)
TASK = Task(
    id="mail",
    prompt="Answer the first mail.",
    tools=(
        ToolSpec(name="mail_list", group="mail"),
        ToolSpec(name="mail_send", group="mail"),
        ToolSpec(name="list", group="todo"),
    ),
    reference=SOLUTION,
    wrong=(
        Solution(name="lazy", answer="lazy"),
        Solution(name="wild", answer="wild"),
    ),
)
LISTED = json.dumps({"items": [{"from": "ann@x.org"}]})
SKILL = skills(TASK.tools, "http://127.0.0.1:8/e/x/tools")["mail/SKILL.md"]


class Chat:
    """A harness: keeps the conversation, and asks the policy for the next message."""

    def __init__(self, *functions, task=TASK, opening=()):
        self.task = task
        self.messages = [*opening, {"role": "user", "content": task.prompt}]
        self.tools = [{"type": "function", "function": function} for function in functions]
        self.policy = Reference()

    async def ask(self):
        """The next tool call as (name, arguments), or the final message."""
        body = {"model": "m", "messages": self.messages, "tools": self.tools}
        reply = await self.policy.complete(ModelRequest(dialect="chat", body=body, task=self.task))
        message = reply.body["choices"][0]["message"]
        self.messages.append(message)
        if "tool_calls" not in message:
            return message["content"]
        function = message["tool_calls"][0]["function"]
        return function["name"], json.loads(function["arguments"])

    def answer(self, content):
        call = self.messages[-1]["tool_calls"][0]
        self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def function(name, **properties):
    return {"name": name, "parameters": {"type": "object", "properties": properties}}


STRING = {"type": "string"}


@pytest.mark.parametrize("prefix", ["", "mcp__tools__", "tools__", "tools_"])
async def test_functions_are_known_under_their_prefixed_names(prefix):
    chat = Chat(function(f"{prefix}list"), *(function(prefix + t.name) for t in TASK.tools))
    assert await chat.ask() == (f"{prefix}mail_list", {"folder": "in"})
    chat.answer(LISTED)
    assert await chat.ask() == (f"{prefix}mail_send", {"to": "ann@x.org", "body": TRICKY})
    chat.answer('{"error": "busy"}')
    assert (await chat.ask())[0] == f"{prefix}mail_send"
    chat.answer('{"id": 7}')
    assert await chat.ask() == "Sent 7."


async def test_an_exact_name_is_preferred():
    chat = Chat(function("other_mail_list"), function("mcp__t__mail_list"), function("mail_list"))
    assert (await chat.ask())[0] == "mail_list"
    chat = Chat(function("other_mail_list"), function("mcp__t__mail_list"))
    assert (await chat.ask())[0] == "mcp__t__mail_list"


@pytest.mark.parametrize(
    "content",
    [
        LISTED,
        f"Wall time: 0.0035 seconds\nOutput:\n{LISTED}",
        [
            {"type": "text", "text": "Wall time: 1 seconds\nOutput:"},
            {"type": "text", "text": LISTED},
        ],
        f"<untrusted>\n{LISTED}\n</untrusted>",
        json.dumps(json.loads(LISTED), indent=1),
    ],
)
async def test_replies_are_read_whatever_the_harness_writes_around_them(content):
    chat = Chat(function("mail_list"), function("mail_send"))
    await chat.ask()
    chat.answer(content)
    assert (await chat.ask())[1]["to"] == "ann@x.org"


async def test_other_calls_in_the_conversation_are_ignored():
    chat = Chat(function("mail_list"), function("mail_send"))
    await chat.ask()
    chat.answer(LISTED)
    call = {"id": "x", "type": "function", "function": {"name": "update_plan", "arguments": "{"}}
    chat.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    chat.messages.append({"role": "tool", "tool_call_id": "x", "content": "{}"})
    assert (await chat.ask())[0] == "mail_send"


CODEX = """\
## Skills
### Skill roots
- `r0` = `/home/a/.codex/skills`
### Available skills
- todo: How to call the todo tools with curl: list (file: r0/todo/SKILL.md)
- mail: How to call the mail tools with curl: mail_list, mail_send (file: r0/mail/SKILL.md)
"""
XML = """\
<available_skills>
<skill><name>todo</name><description>list</description><location>/s/todo/SKILL.md</location></skill>
<skill><name>mail</name><description>mail_list, mail_send</description>
<location>/s/mail/SKILL.md</location></skill>
</available_skills>
"""


@pytest.mark.parametrize(
    ("text", "path"), [(CODEX, "/home/a/.codex/skills/mail/SKILL.md"), (XML, "/s/mail/SKILL.md")]
)
@pytest.mark.parametrize(
    ("shell", "wrap"),
    [
        (function("exec_command", cmd=STRING, yield_time_ms={"type": "number"}), str),
        (function("bash", command=STRING), str),
        (
            function("shell", command={"type": "array", "items": STRING}),
            lambda command: ["bash", "-lc", command],
        ),
    ],
)
async def test_a_skill_is_read_and_its_command_sent(text, path, shell, wrap):
    chat = Chat(shell, opening=[{"role": "developer", "content": text}])
    argument = next(iter(shell["parameters"]["properties"]))
    name, arguments = await chat.ask()
    assert (name, arguments[argument]) == (shell["name"], wrap(f"cat {path}"))
    chat.answer(f"Process exited with code 0\nOutput:\n{SKILL}")
    command = (await chat.ask())[1][argument]
    assert wrap(
        SKILL.split("```bash\n")[1].split("\n```")[0].replace("{}", '{"folder": "in"}')
    ) == (command)
    chat.answer(f"Process exited with code 0\nOutput:\n{LISTED}\n200\n")
    command = (await chat.ask())[1][argument]
    sent = command if isinstance(command, str) else command[-1]
    assert json.loads(sent.splitlines()[-2]) == {"to": "ann@x.org", "body": TRICKY}
    assert "/tools/mail_send " in sent
    chat.answer('{"detail": "slow down"}\n429')
    assert (await chat.ask())[1][argument] == command
    chat.answer('{"id": 7}\n200')
    assert await chat.ask() == "Sent 7."


async def test_a_shell_gets_what_else_its_schema_requires():
    shell = function("Bash", command=STRING, description=STRING)
    shell["parameters"]["required"] = ["command", "description"]
    chat = Chat(shell, opening=[{"role": "system", "content": XML}])
    arguments = (await chat.ask())[1]
    assert set(arguments) == {"command", "description"}
    assert arguments["command"] == "cat /s/mail/SKILL.md"


async def test_skills_without_a_telling_description_are_read_in_turn():
    text = "Skills: /s/a/SKILL.md and /s/b/SKILL.md"
    chat = Chat(function("bash", command=STRING), opening=[{"role": "system", "content": text}])
    assert (await chat.ask())[1]["command"] == "cat /s/a/SKILL.md"
    chat.answer("nothing here")
    assert (await chat.ask())[1]["command"] == "cat /s/b/SKILL.md"
    chat.answer("nothing here")
    assert "no SKILL.md" in await chat.ask()


@pytest.mark.parametrize(
    "output",
    [
        LISTED[:10] + "…99 tokens truncated…",
        "curl: (7) Failed to connect\n\n000\n",
        "",
    ],
)
async def test_a_reply_that_was_cut_is_not_asked_for_again_and_admitted(output):
    chat = Chat(function("bash", command=STRING), opening=[{"role": "system", "content": XML}])
    await chat.ask()
    chat.answer(SKILL)
    await chat.ask()
    chat.answer(output)
    assert "[nothing at 1.items.0.from]" in (await chat.ask())[1]["command"]
    chat.answer('{"id": 7}\n200')
    assert await chat.ask() == "Sent 7.\n\n(Could not be read whole: mail_list.)"


async def test_it_says_what_it_lacks():
    assert "neither it nor a shell" in await Chat(function("view_image", path=STRING)).ask()
    assert "no SKILL.md" in await Chat(function("bash", command=STRING)).ask()
    assert "no reference solution" in await Chat(task=Task(id="t", prompt="p")).ask()


async def test_replies_are_complete_chat_completions():
    body = {"messages": [{"role": "user", "content": "x" * 400}], "tools": []}
    done = Task(id="t", prompt="p", reference=Solution(name="r", answer="ok"))
    request = ModelRequest(dialect="chat", body=body, task=done)
    reply = await Reference().complete(request)
    assert reply.finish == reply.body["choices"][0]["finish_reason"] == "stop"
    assert 100 < reply.usage.prompt < 120
    assert reply.body["usage"]["total_tokens"] == reply.usage.prompt + reply.usage.completion
    assert reply == await Reference().complete(request)
    assert await Reference().count_tokens(body) == reply.usage.prompt


def test_reference_takes_no_argument():
    assert Reference.from_spec("", "").label == "reference policy (no LLM)"
    with pytest.raises(UsageError, match="takes no argument"):
        Reference.from_spec("fast", "")


@pytest.mark.parametrize("argument", ["", "0.8", "p=", "p=x", "p=1.5", "p=-1", "p=nan", "q=0.5"])
def test_a_bad_probability_is_one_clear_line(argument):
    with pytest.raises(UsageError, match="p must be a number from 0 to 1"):
        NoisyReference.from_spec(argument, "")


def test_noise_has_the_known_rate_and_is_fixed_by_the_seed():
    policy = NoisyReference.from_spec("p=0.8", "")
    played = [policy.solution(TASK, seed).name for seed in range(2000)]
    assert played == [policy.solution(TASK, seed).name for seed in range(2000)]
    assert played.count("reference") / 2000 == pytest.approx(0.8, abs=0.03)
    assert played.count("lazy") / 2000 == pytest.approx(0.1, abs=0.03)
    other = Task(id="other", prompt="p", reference=SOLUTION, wrong=TASK.wrong)
    assert played != [policy.solution(other, seed).name for seed in range(2000)]


def test_noise_at_its_limits():
    always, never = NoisyReference.from_spec("p=1", ""), NoisyReference.from_spec("p=0", "")
    assert {always.solution(TASK, seed).name for seed in range(50)} == {"reference"}
    bare = Task(id="bare", prompt="p", reference=SOLUTION)
    assert {never.solution(bare, seed).name for seed in range(50)} == {"empty-handed"}
    assert never.label == "noisy reference policy, p=0 (no LLM)"
    assert never.fingerprint() == {"model": "noisy-reference", "p": 0.0}


async def test_a_skill_that_is_only_named_is_loaded_with_the_harness_function():
    listed = (
        "Available skills:\n- todo: How to call: list\n- mail: How to call: mail_list, mail_send"
    )
    functions = function("Bash", command=STRING), function("Skill", skill=STRING, args=STRING)
    chat = Chat(*functions, opening=[{"role": "system", "content": listed}])
    assert await chat.ask() == ("Skill", {"skill": "mail"})
    chat.answer("Launching skill: mail")
    chat.messages.append({"role": "user", "content": f"Base directory: /x\n\n{SKILL}"})
    name, arguments = await chat.ask()
    assert (name, "/mail_list --data-binary" in arguments["command"]) == ("Bash", True)


async def test_a_skill_that_does_not_help_is_loaded_once():
    listed = "- mail: How to call: mail_list"
    functions = function("Bash", command=STRING), function("Skill", skill=STRING)
    chat = Chat(*functions, opening=[{"role": "system", "content": listed}])
    assert (await chat.ask())[0] == "Skill"
    chat.answer("Unknown skill")
    assert await chat.ask() == "I can't call mail_list: I was shown no SKILL.md that documents it."


CATALOG = (
    function("tool_search", query=STRING),
    function("tool_call", id=STRING, args={"type": "object"}),
    function("exec", command=STRING),
)


def warned(value):
    """As OpenClaw hands on what an MCP server says."""
    return f"SECURITY NOTICE: ...\n<<<X id=1>>>\n---\n{json.dumps(value, indent=2)}\n<<<END id=1>>>"


async def test_a_tool_is_searched_in_the_catalogue_and_called_through_it():
    bundled = [{"role": "system", "content": "- weather: /opt/weather/SKILL.md"}]
    chat = Chat(*CATALOG, opening=bundled)
    assert await chat.ask() == ("tool_search", {"query": "mail_list"})
    chat.answer(warned([{"name": "mail_list"}, {"name": "tools__mail_list"}]))
    found = {"id": "tools__mail_list", "args": {"folder": "in"}}
    assert await chat.ask() == ("tool_call", found)
    chat.answer(warned({"tool": {}, "result": {"content": [{"type": "text", "text": LISTED}]}}))
    assert await chat.ask() == ("tool_search", {"query": "mail_send"})
    chat.answer(warned([{"name": "tools__mail_send"}]))
    name, arguments = await chat.ask()
    assert (name, arguments["args"]) == ("tool_call", {"to": "ann@x.org", "body": TRICKY})
    chat.answer("Error: connection lost")
    assert (await chat.ask()).startswith("Sent")


async def test_what_is_not_in_the_catalogue_is_looked_for_once_and_then_in_the_skills():
    bundled = [{"role": "system", "content": "- weather: /opt/weather/SKILL.md"}]
    chat = Chat(*CATALOG, opening=bundled)
    await chat.ask()
    chat.answer(warned([{"name": "sessions_list"}]))
    assert await chat.ask() == ("exec", {"command": "cat /opt/weather/SKILL.md"})


async def test_a_skill_that_names_the_tool_comes_before_the_catalogue():
    listed = [{"role": "system", "content": "- mail: mail_list, mail_send: ~/skills/mail/SKILL.md"}]
    chat = Chat(*CATALOG, opening=listed)
    assert await chat.ask() == ("exec", {"command": "cat ~/skills/mail/SKILL.md"})
    chat.answer(SKILL)
    name, arguments = await chat.ask()
    assert (name, "/mail_list --data-binary" in arguments["command"]) == ("exec", True)


async def test_the_catalogue_is_asked_where_a_skill_only_mentions_the_tool():
    listed = [{"role": "system", "content": "- guide: uses mail_list: ~/skills/guide/SKILL.md"}]
    chat = Chat(*CATALOG, opening=listed)
    assert await chat.ask() == ("exec", {"command": "cat ~/skills/guide/SKILL.md"})
    chat.answer("# A guide to good mails")
    assert await chat.ask() == ("tool_search", {"query": "mail_list"})
    chat.answer(warned([{"name": "tools__mail_send"}, {"name": "tools__mail_list"}]))
    assert (await chat.ask())[0] == "tool_call"
    chat.answer(warned({"tool": {}, "result": {"content": [{"type": "text", "text": LISTED}]}}))
    name, arguments = await chat.ask()
    assert (name, arguments["id"]) == ("tool_call", "tools__mail_send")
