"""Arguments, words, key names, addresses: all that needs no browser."""

import pytest

from environments.browser_use.action import ActionError
from environments.browser_use.evidence import describe
from environments.browser_use.keyboard import chord
from environments.browser_use.locate import Target, read_target
from environments.browser_use.navigation import address
from environments.browser_use.tools import TOOLS, parse
from environments.browser_use.viewport import pixels
from rollout.types import ToolCall


def test_each_tool_is_described_to_the_model() -> None:
    assert len(TOOLS) == 15
    for tool in TOOLS:
        assert tool.name.startswith("browser_")
        assert tool.description.endswith(".")
        assert tool.group == "browser"
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("browser_click", {"x": 0.5, "y": 1}, "click at (0.500, 1.000)"),
        ("browser_click", {"x": 0, "y": 0, "count": 2}, "double click at (0.000, 0.000)"),
        ("browser_click", {"x": 0, "y": 0, "button": "right"}, "right click at (0.000, 0.000)"),
        ("browser_type", {"text": "a<b\n", "enter": True}, r"type 'a<b\n' and press Enter"),
        ("browser_scroll", {"delta_y": 0.5}, "scroll by (0.000, 0.500)"),
        ("browser_tab", {"action": "focus", "index": 1}, "focus tab 1"),
        ("browser_wait", {"seconds": 2}, "wait 2 s"),
        ("browser_wait", {"seconds": -2}, 'browser_wait {"seconds": -2}'),
        ("browser_fly", None, "browser_fly null"),
    ],
)
def test_calls_in_words(name: str, arguments: object, words: str) -> None:
    call = ToolCall(
        index=0, name=name, arguments=arguments, status=409, reply={}, surface="native"
    )  # fmt: skip
    assert describe(call) == words


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("browser_click", {"x": 1.01, "y": 0}, r"<= 1.0 - at `\$.x`"),
        ("browser_click", {"x": 640, "y": 360}, "<= 1.0"),
        ("browser_click", {"x": "0.5", "y": 0}, "Expected `float`, got `str`"),
        ("browser_click", {"x": 0.5}, "missing required field `y`"),
        ("browser_click", {"x": 0.5, "y": 0.5, "selector": "a"}, "unknown field `selector`"),
        ("browser_click", [0.5, 0.5], "Expected `object`"),
        ("browser_type", {"text": "a", "x": 0.5}, "both x and y"),
        ("browser_scroll", {"y": 0.5}, "both x and y"),
        ("browser_tab", {"action": "focus"}, "focus needs an index"),
    ],
)
def test_bad_arguments_say_what_is_wrong(name: str, arguments: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(name, arguments)


def test_the_edge_is_the_last_pixel() -> None:
    assert pixels(1, 1) == (1279, 719)
    assert pixels(0.5, 0) == (640, 0)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("Enter", "Enter"),
        ("return", "Enter"),
        ("esc", "Escape"),
        ("page down", "PageDown"),
        ("Page_Down", "PageDown"),
        ("down", "ArrowDown"),
        ("ArrowLeft", "ArrowLeft"),
        ("ctrl+a", "Control+a"),
        ("Ctrl + A", "Control+a"),
        ("ControlOrMeta+c", "Control+c"),
        ("cmd+v", "Control+v"),
        ("ctrl+shift+t", "Control+Shift+t"),
        ("shift+Tab", "Shift+Tab"),
        ("shift", "Shift"),
        ("+", "+"),
        ("ctrl++", "Control++"),
        ("A", "A"),
        (" ", "Space"),
        ("é", "é"),
        ("f5", "F5"),
    ],
)
def test_keys_have_many_names(name: str, keys: str) -> None:
    assert chord(name) == keys


@pytest.mark.parametrize("name", ["", "hyper+a", "ctrl+", "Enterr", "a+b"])
def test_what_is_no_key(name: str) -> None:
    with pytest.raises(ActionError, match="no key"):
        chord(name)


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("https://example.org/a?b=c", "https://example.org/a?b=c"),
        ("example.org", "https://example.org"),
        ("example.org:8080/a", "https://example.org:8080/a"),
        ("shop.localhost:1234/cart", "http://shop.localhost:1234/cart"),
        ("localhost:8000", "http://localhost:8000"),
        ("127.0.0.1:8000/", "http://127.0.0.1:8000/"),
        ("about:blank", "about:blank"),
    ],
)
def test_addresses(typed: str, url: str) -> None:
    assert address(f" {typed} ") == url


@pytest.mark.parametrize(
    "typed",
    ["", "cats", "file:///etc/passwd", "chrome://settings", "javascript:alert(1)", "http://",
     "view-source:file:///etc/passwd", "http://[::1"],
)  # fmt: skip
def test_what_is_no_web_page(typed: str) -> None:
    with pytest.raises(ActionError, match="not the address of a web page"):
        address(typed)


def test_targets() -> None:
    assert read_target("text=Add  to cart") == Target(text="Add to cart")
    assert read_target("frame=#f >> frame=iframe >> css=a[href='x=y'] >> nth=2") == Target(
        ("#f", "iframe"), css="a[href='x=y']", nth=2
    )
    for bad in ("Add", "text=a >> css=b", "nth=1", "text=a >> nth=x", "text=", "id=a"):
        with pytest.raises(LookupError, match="target"):
            read_target(bad)
