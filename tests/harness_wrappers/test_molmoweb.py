"""MolmoWeb's loop: what the model is shown, how its replies are read, and what becomes of them."""

import json

import pytest
from support.desk import TASK as DESK
from support.desk import Scripted
from support.gateways import QUICK
from support.screen import Screen, at, png, screen_task

from harness_wrappers._molmoweb import Page, PastStep, prompt, read
from harness_wrappers._molmoweb_actions import Infeasible, Say, Use, meant
from harness_wrappers.molmoweb import MAX_STEPS, MolmoWeb
from rollout import pictures
from rollout.episode import Setup, run_episode
from rollout.gateway.server import Gateway
from rollout.gateway.upstream import Refused
from rollout.gateway.upstreams._molmoweb import recognised
from rollout.gateway.upstreams.every_tool import EveryTool
from rollout.gateway.upstreams.noisy_reference import NoisyReference
from rollout.gateway.upstreams.reference import Reference
from rollout.sandboxes.local import Local
from rollout.types import Image, Outcome, Solution, Step, ToolReply


def reply(action, thought="because"):
    return {"content": json.dumps({"thought": thought, "action": action})}


def told(text):
    return reply({"name": "send_msg_to_user", "msg": text})


def click(x=25, y=12.5):
    return reply({"name": "click", "x": x, "y": y})


async def attempt(upstream, preset="default", task=None, environment=None):
    async with Gateway(upstream, retry=QUICK) as gateway:
        world = environment or Screen()
        setup = Setup(world, MolmoWeb(preset=preset), gateway, Local(), "native")
        return await run_episode(setup, task or screen_task(), 0)


def shown(request):
    """Text and picture of a call."""
    [message] = request.body["messages"]
    text, picture = message["content"]
    return text["text"], picture["image_url"]["url"]


@pytest.mark.parametrize("preset", MolmoWeb.presets)
async def test_the_reference_policy_passes_under_every_preset(preset):
    episode, trace = await attempt(Reference(), preset)
    assert (episode.outcome, episode.reason) == (Outcome.PASSED, "")
    names = [call.name.removeprefix("browser_") for call in trace.tool_calls]
    assert names == ["screenshot", "click", "type", "click"]
    assert len(trace.calls) == (5 if preset == "runner" else 4)
    assert trace.log == ""


async def test_a_step_is_one_turn_with_the_last_steps_the_page_and_its_picture():
    upstream = Scripted([click(), told("hm"), told("[ANSWER] Zoë")])
    _, trace = await attempt(upstream)
    assert shown(upstream.requests[2])[0] == (
        "molmo_web_think: \n# GOAL\nSend the name Zoë.\n\n# PREVIOUS STEPS\n"
        "## Step 1\nTHOUGHT: because\nACTION: {'name': 'click', 'x': 25, 'y': 12.5}\n"
        "## Step 2\nTHOUGHT: because\nACTION: {'name': 'send_msg_to_user', 'msg': 'hm'}\n\n"
        "# CURRENTLY ACTIVE PAGE\nPage 0: Form, sent 0 | http://form.localhost/\n\n# NEXT STEP\n"
    )
    digests = [pictures.digest_of(shown(request)[1]) for request in upstream.requests]
    first, second = (call.images[0] for call in trace.tool_calls)
    assert digests == [first, second, second]
    assert "tools" not in upstream.requests[0].body


async def test_only_the_last_steps_are_shown_and_keep_their_numbers():
    upstream = Scripted([*(click() for _ in range(5)), told("[ANSWER] x")])
    await attempt(upstream, "training")
    text, _ = shown(upstream.requests[-1])
    assert [f"## Step {n}\n" in text for n in range(1, 6)] == [False, False, True, True, True]


def test_without_thoughts_steps_are_actions_and_long_titles_are_cut():
    page = Page(Image(data=b""), url="http://x/" + "u" * 200, title="t", tab=2)
    past = [PastStep(3, "hidden", {"name": "noop"}, "it broke")]
    text = prompt("goal", past, page, "molmo_web_base")
    assert "## Step 3\nACTION: {'name': 'noop'}\nERROR: it broke\n\n" in text
    assert "hidden" not in text
    here = text.split("Page 2: t | ")[1].split("\n")[0]
    assert (len(here), here.endswith("... (truncated)")) == (100, True)


def test_what_an_action_does_not_tell_of_the_page_stays():
    page = Page(Image(data=b"1"), "u", "t", 1)
    assert page.after(ToolReply(status=422, body={"error": "no"})) == page
    assert page.after(ToolReply(body=None, images=(Image(data=b"2"),))).screenshot.data == b"2"


POINT = {"x": 0.5, "y": 0.25}
TAB = "browser_tab"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("click x=50 y=25", Use("browser_click", {**POINT, "button": "left", "count": 1})),
        (
            "mouse_click x=50 y=25 button='right' click_type='double'",
            Use("browser_click", {**POINT, "button": "right", "count": 2}),
        ),
        ("dblclick x='50' y=25", Use("browser_click", {**POINT, "button": "left", "count": 2})),
        ("hover_at x=50 y=25 duration=1.0", Use("browser_hover", POINT)),
        (
            "mouse_drag_and_drop from_x=10 from_y=20 to_x=30 to_y=40",
            Use("browser_drag", {"from_x": 0.1, "from_y": 0.2, "to_x": 0.3, "to_y": 0.4}),
        ),
        ("scroll delta_y=-50", Use("browser_scroll", {"delta_x": 0.0, "delta_y": -0.5})),
        (
            "scroll_at x=50 y=25 delta_x=100 delta_y=0",
            Use("browser_scroll", {"delta_x": 1.0, "delta_y": 0.0, **POINT}),
        ),
        (
            "keyboard_type text='a<b\\n李'",
            Use("browser_type", {"text": "a<b\n李", "clear": False, "enter": False}),
        ),
        (
            "gemini_type_text_at x=500 y=250 text='a'",
            Use("browser_type", {"text": "a", **POINT, "clear": True, "enter": True}),
        ),
        ("keyboard_press key='controlormeta+A'", Use("browser_press", {"key": "ctrl+a"})),
        ("keypress key='Enter'", Use("browser_press", {"key": "Enter"})),
        ("goto url='http://x'", Use("browser_goto", {"url": "http://x"})),
        ("browser_nav nav_type='go_back' index=-1", Use("browser_back", {})),
        ("browser_nav nav_type='go_forward'", Use("browser_forward", {})),
        ("browser_nav nav_type='new_tab' index=-1", Use(TAB, {"action": "new"})),
        ("browser_nav nav_type='tab_focus' index=1", Use(TAB, {"action": "focus", "index": 1})),
        ("browser_nav nav_type='close_tab'", Use(TAB, {"action": "close"})),
        ("noop noop_reason='captcha'", Use("browser_wait", {"seconds": 5})),
        ("select_option x=50 y=25 option='L'", Use("browser_select", {**POINT, "option": "L"})),
        ("upload_file x=50 y=25 file='a.txt'", Use("browser_upload", {**POINT, "file": "a.txt"})),
        ("send_msg_to_user msg='hi'", Say("hi")),
        ("report_infeasible infeasibility_reason='no'", Infeasible("no")),
    ],
)
def test_every_action_is_a_tool_call(action, expected):
    name, _, rest = action.partition(" ")
    found = meant({"name": name, **eval(f"dict({rest.replace(' ', ', ')})")}, "percent")
    assert found == expected


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ({"name": "click", "x": 5}, "click: y must be a number, it is missing"),
        ({"name": "click", "x": "left", "y": 5}, "click: x must be a number, it is 'left'"),
        ({"name": "click", "x": True, "y": 5}, "it is True"),
        ({"name": "click", "x": float("nan"), "y": 5}, "it is nan"),
        ({"name": "click", "x": 1, "y": 5, "button": "thumb"}, "button must be one of left"),
        ({"name": "keyboard_press", "key": "F13"}, "there is no key 'F13'"),
        ({"name": "keyboard_type", "text": 5}, "text must be text"),
        ({"name": "browser_nav", "nav_type": "up"}, "nav_type must be one of"),
        ({"name": "fly"}, "there is no action 'fly'"),
        ({}, "there is no action 'None'"),
    ],
)
def test_what_asks_for_nothing_says_why(action, problem):
    with pytest.raises(ValueError, match=r".*") as caught:
        meant(action, "percent")
    assert problem in str(caught.value)


def test_scales_and_edges():
    def place(scale, **fields):
        return meant({"name": "hover_at", **fields}, scale).arguments

    assert place("unit", x=0.5, y=1) == {"x": 0.5, "y": 1 - 2 / 720}
    assert place("percent", x=1, y=1) == {"x": 0.01, "y": 0.01}
    assert place("percent", x=-3, y=400) == {"x": 1 / 1280, "y": 1 - 2 / 720}
    typed = {"name": "gemini_type_text_at", "x": 0.5, "y": 0.5, "text": ""}
    assert meant(typed, "unit").arguments["x"] == 0.5
    assert meant({"name": "keyboard_press", "key": "Home"}, "unit", True).arguments["key"] == "Home"


@pytest.mark.parametrize("bad", ["", "click", "[]", "{}", '{"action": 5}', "{'name': 'noop'}"])
def test_replies_that_hold_no_action(bad):
    with pytest.raises(ValueError, match=r".+"):
        read(bad, whole=False)


def test_replies_among_other_words_are_read_only_from_guided_models():
    bare = '{"name": "noop"}'
    assert read(bare, whole=True) == ("", {"name": "noop"})
    fenced = f'<think>{{hm}}</think>Sure:\n```json\n{{"thought": "t", "action": {bare}}}\n```'
    assert read(fenced, whole=False) == ("t", {"name": "noop"})
    with pytest.raises(ValueError, match=r".+"):
        read(fenced, whole=True)


async def test_reasoning_is_read_where_there_is_no_content():
    said = told("[ANSWER] 42")
    upstream = Scripted([{"content": None, "reasoning_content": said["content"]}])
    _, trace = await attempt(upstream)
    assert trace.answer == "42"


async def test_malformed_replies_cost_a_step_and_are_counted():
    upstream = Scripted(
        [{"content": "no JSON"}, reply({"name": "fly"}, "up"), click(), told("[ANSWER] x")]
    )
    episode, trace = await attempt(upstream)
    assert (episode.outcome, trace.answer) == (Outcome.FAILED, "x")
    assert trace.log == "malformed replies: 2, in steps 1, 2"
    text, _ = shown(upstream.requests[2])
    assert "THOUGHT: My reply could not be used:" in text
    assert "THOUGHT: up\nACTION: {'name': 'fly'}" in text
    assert [call.name for call in trace.tool_calls] == ["browser_screenshot", "browser_click"]


async def test_malformed_replies_end_it_where_that_is_asked_for():
    episode, _ = await attempt(Scripted([{"content": "no JSON"}]), "unit-strict")
    assert (episode.outcome, episode.cause) == (Outcome.FAILED, "policy")
    assert "the reply could not be used" in episode.reason


@pytest.mark.parametrize(("preset", "seen"), [("unit", False), ("unit-errors", True)])
async def test_errors_are_shown_where_that_is_asked_for(preset, seen):
    upstream = Scripted([reply({"name": "fly"}), told("[ANSWER] x")])
    await attempt(upstream, preset)
    text, _ = shown(upstream.requests[1])
    assert ("ERROR: there is no action 'fly'" in text) is seen


@pytest.mark.parametrize(
    ("preset", "turns", "answer"),
    [
        ("default", ["[ANSWER] 42"], "42"),
        ("default", ["about 42", "[EXIT]"], "about 42"),
        ("default", ["[EXIT] bye"], "bye"),
        ("runner", ["[ANSWER] 41", "[ANSWER] 42", "[EXIT]"], "42"),
    ],
)
async def test_ends(preset, turns, answer):
    upstream = Scripted([told(text) for text in turns])
    episode, trace = await attempt(upstream, preset)
    assert (trace.answer, episode.limit) == (answer, "")
    assert len(upstream.requests) == len(turns)


async def test_a_task_that_the_model_finds_infeasible_ends():
    action = {"name": "report_infeasible", "infeasibility_reason": "no such shop"}
    episode, trace = await attempt(Scripted([reply(action)]))
    assert (episode.outcome, trace.answer) == (Outcome.FAILED, "[INFEASIBLE] no such shop")


@pytest.mark.parametrize("limit", [0, 3])
async def test_the_step_budget(limit):
    steps = limit or MAX_STEPS
    upstream = Scripted([told("no end"), *(click() for _ in range(steps))])
    episode, trace = await attempt(upstream, task=screen_task(max_turns=limit))
    assert (episode.cause, trace.answer) == ("policy", "no end")
    assert f"no answer after {steps} steps" in episode.reason
    assert len(trace.calls) == steps


async def test_a_refused_call_ends_it():
    episode, _ = await attempt(Scripted([Refused("too many pictures", 400)]))
    assert episode.outcome is Outcome.INFRA_ERROR
    assert "too many pictures" in episode.reason


async def test_a_task_without_a_browser_is_refused_with_one_line():
    assert "browser_*" in MolmoWeb().unfit(DESK)
    assert MolmoWeb().unfit(screen_task()) == ""
    episode, _ = await attempt(Reference(), task=DESK)
    assert (episode.outcome, episode.cause) == (Outcome.INFRA_ERROR, "harness")
    assert "react takes any" in episode.reason


def solution(*steps, answer="Sent: Zoë"):
    return Solution(name="reference", steps=steps, answer=answer)


async def test_scripted_steps_are_waited_for_repeated_and_gone_back_to():
    class Slow(Screen):
        """Its button is there from the second look on, and takes two clicks."""

        def open(self, task, seed):
            manager = super().open(task, seed)
            return _Slow(manager)

    steps = (
        Step(call="browser_type", arguments={"text": "Zoë"}),
        Step(
            call="browser_click",
            arguments=at("text=Send"),
            retry=2,
            expect={"title": "Form, sent 1"},
            back=1,
        ),
        Step(call="browser_press", arguments={"key": "ctrl+a"}),
    )
    task = screen_task(reference=solution(*steps))
    _, trace = await attempt(Reference(), task=task, environment=Slow())
    names = [call.name.removeprefix("browser_") for call in trace.tool_calls[1:]]
    assert names == ["type", "wait", "click", "type", "click", "press"]
    assert trace.answer == "Sent: Zoë"


class _Slow:
    def __init__(self, manager):
        self._manager = manager

    async def __aenter__(self):
        world = await self._manager.__aenter__()
        locate, hits = world.locate, world._hits
        looks = []

        async def late(target):
            looks.append(target)
            if len(looks) < 2:
                raise LookupError(target)
            return await locate(target)

        world.locate = late
        world._hits = lambda *given: hits(*given) and len(looks) > 2
        return world

    async def __aexit__(self, *error):
        await self._manager.__aexit__(*error)


async def test_a_target_that_never_comes_is_a_malformed_step_and_the_solution_goes_on():
    steps = (Step(call="browser_click", arguments=at("text=Gone")), Step(call="browser_back"))

    class Empty(Screen):
        def open(self, task, seed):
            return _Without(super().open(task, seed))

    task = screen_task(reference=solution(*steps, answer="tried"))
    _, trace = await attempt(Reference(), task=task, environment=Empty())
    assert trace.log == "malformed replies: 1, in steps 1"
    assert [call.name for call in trace.tool_calls] == ["browser_screenshot", "browser_back"]
    assert trace.answer == "tried"


class _Without(_Slow):
    async def __aenter__(self):
        world = await self._manager.__aenter__()

        async def never(target):
            raise LookupError(target)

        world.locate = never
        return world


EVERY = {
    "browser_click": {"x": 0.5, "y": 0.25, "button": "right", "count": 1},
    "browser_hover": POINT,
    "browser_drag": {"from_x": 0.1, "from_y": 0.2, "to_x": 0.3, "to_y": 0.4},
    "browser_scroll": {"delta_x": 0.0, "delta_y": -0.5, "x": 0.5, "y": 0.25},
    "browser_type": {"text": "a", "x": 0.5, "y": 0.25, "clear": True, "enter": True},
    "browser_press": {"key": "ctrl+a"},
    "browser_goto": {"url": "http://x"},
    "browser_back": {},
    "browser_forward": {},
    "browser_tab": {"action": "focus", "index": 1},
    "browser_select": {**POINT, "option": "L"},
    "browser_upload": {**POINT, "file": "a.txt"},
    "browser_wait": {"seconds": 5},
}


@pytest.mark.parametrize("preset", ["default", "unit"])
async def test_whatever_a_solution_calls_arrives_as_it_was_written(preset):
    steps = [Step(call=name, arguments=arguments) for name, arguments in EVERY.items()]
    steps += [
        Step(call="browser_type", arguments={"text": "b", "clear": True, "enter": True}),
        Step(call="browser_click", arguments={**POINT, "count": 2}),
        Step(call="browser_reload"),
    ]
    task = screen_task(reference=solution(*steps), max_turns=40)
    _, trace = await attempt(Reference(), preset, task)
    made = [(call.name, call.arguments) for call in trace.tool_calls[1:]]
    assert [name for name, _ in made[:-1]] == [step.call for step in steps[:-1]]
    assert made[-1] == ("browser_press", {"key": "F5"})
    for (_, arguments), step in zip(made[:-1], steps[:-1], strict=True):
        for key, value in step.arguments.items():
            assert arguments[key] == (pytest.approx(value) if isinstance(value, float) else value)


async def test_the_noisy_and_the_every_tool_policy_speak_it_too():
    wrong = Solution(name="lazy", answer="Sent nothing.")
    _, trace = await attempt(NoisyReference(0.0), task=screen_task(wrong=(wrong,)))
    assert trace.answer == "Sent nothing."
    _, trace = await attempt(EveryTool(), task=screen_task(max_turns=40))
    assert trace.answer.startswith("I have called browser_click")


def test_other_harnesses_are_not_taken_for_it():
    page = Page(Image(data=png(1)), "http://x/" + "u" * 200, "a | b " * 40)
    text = prompt("g", [], page, "molmo_web_think")
    content = [{"type": "text", "text": text}]
    message = {"role": "user", "content": content}
    assert recognised({"messages": [message]}) is not None
    assert recognised({"messages": [message], "tools": [{}]}) is None
    assert recognised({"messages": [message, message]}) is None
    assert recognised({"messages": [{"role": "user", "content": text}]}) is None
    other = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    assert recognised({"messages": [other]}) is None
