"""Official prompts: read from a checkout's source, never run, refused where they are not as expected."""

from pathlib import Path

import pytest
from support.judges import ScriptedJudge, evidence, said

from judges.options import make_protocol, note
from rollout.errors import UsageError

WEBJUDGE = '''
raise SystemExit("this file is never run")

async def identify_key_points(task, model):
    system_msg = """POINTS-SYSTEM {not a field}"""
    prompt = """POINTS {task}"""

async def judge_image(task, image_path, key_points, model):
    system_msg = "IMAGE-SYSTEM"
    prompt = """IMAGE {task} | {key_points}"""

async def WebJudge_Online_Mind2Web_eval(task, last_actions, images_path, model, score_threshold):
    system_msg = """VERDICT-SYSTEM"""
    prompt = """VERDICT {task} | {key_points} | {last_actions} | {thoughts}"""
    if len(images_path) == 0:
        prompt = """UNSEEN {task} | {key_points} | {last_actions}"""
'''
AGENTTREK = '''
def AgentTrek_eval(task, last_actions, thoughts, images_path):
    system_msg = """TREK-SYSTEM"""
    prompt = """TREK {task} | {thoughts_and_actions}"""
'''
WEBVOYAGER = '''
SYSTEM_PROMPT = """VOYAGER-SYSTEM"""
USER_PROMPT = """VOYAGER <task> | <answer> | <num>"""

def auto_eval_by_gpt4v(process_dir, openai_client, api_model, img_num):
    parts = [{'type': 'text', 'text': filled}] + images + [{'type': 'text', 'text': "CLOSING"}]
'''
FILES = {
    "webjudge": ("src/methods/webjudge_online_mind2web.py", WEBJUDGE),
    "agenttrek": ("src/methods/agenttrek_eval.py", AGENTTREK),
    "webvoyager": ("evaluation/auto_eval.py", WEBVOYAGER),
}


def checkout(folder: Path, name: str, source: str | None = None) -> Path:
    path, text = FILES[name]
    (folder / path).parent.mkdir(parents=True)
    (folder / path).write_text(text if source is None else source)
    return folder


async def test_webjudge_asks_with_the_checkouts_words(tmp_path: Path) -> None:
    def answer(text: str, repeat: int) -> str:
        if text.startswith("POINTS-SYSTEM {not a field}\nPOINTS Buy"):
            return "**Key Points**:\n1. a pen"
        if text.startswith("IMAGE-SYSTEM\nIMAGE Buy the {cheapest} pen | 1. a pen"):
            return "1. **Reasoning**: seen\n2. **Score**: 4"
        return "Thoughts: fine\nStatus: success"

    judge = ScriptedJudge(answer)
    protocol = make_protocol("webjudge", checkout(tmp_path, "webjudge"))
    assert (await protocol.verdict(evidence(1), judge)).score == 1.0
    assert said(judge.asked[-1]) == (
        "VERDICT-SYSTEM\nVERDICT Buy the {cheapest} pen | 1. a pen | 1. click 1 | 1. seen"
    )
    await protocol.verdict(evidence(0), judge)
    assert said(judge.asked[-1]) == "VERDICT-SYSTEM\nUNSEEN Buy the {cheapest} pen | 1. a pen | "
    told = protocol.fingerprint()
    assert (told["prompts"], told["prompts_file"]) == ("official", FILES["webjudge"][0])
    assert "prompts: official" in note(protocol)


async def test_agenttrek_asks_with_the_checkouts_words(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda text, repeat: "Status: failure")
    protocol = make_protocol("agenttrek", checkout(tmp_path, "agenttrek"))
    assert (await protocol.verdict(evidence(1), judge)).score == 0.0
    assert said(judge.asked[0]) == (
        "TREK-SYSTEM\nTREK Buy the {cheapest} pen | Thought 1: because 1\nAction 1: click 1"
    )


async def test_webvoyager_asks_and_reads_as_the_original(tmp_path: Path) -> None:
    judge = ScriptedJudge(
        lambda text, repeat: "Verdict: NOT SUCCESS" if repeat else "Status: success"
    )
    protocol = make_protocol("webvoyager:k=15", checkout(tmp_path, "webvoyager"))
    assert (await protocol.verdict(evidence(2), judge)).score == 0.0
    assert said(judge.asked[0]) == (
        "VOYAGER-SYSTEM\nVOYAGER Buy the {cheapest} pen | Bought. | 15\nCLOSING"
    )


@pytest.mark.parametrize("name", FILES)
def test_other_prompts_have_another_fingerprint(name: str, tmp_path: Path) -> None:
    sources = FILES[name][1], FILES[name][1] + "# another release"
    digests = {
        make_protocol(name, checkout(tmp_path / str(n), name, source)).fingerprint()[
            "prompts_sha256"
        ]
        for n, source in enumerate(sources)
    }
    assert len(digests) == 2


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("webjudge", "def judge_image(: pass", "is no Python"),
        ("webjudge", "x = 1", "has no function WebJudge_Online_Mind2Web_eval"),
        ("webjudge", WEBJUDGE.replace("POINTS {task}", "{other}"), "prompt asks for other"),
        ("webjudge", WEBJUDGE.replace("POINTS {task}", "{task"), "prompt is no template"),
        (
            "agenttrek",
            AGENTTREK.replace("system_msg", "s"),
            "no text to AgentTrek_eval: system_msg",
        ),
        ("webvoyager", WEBVOYAGER.replace("USER_PROMPT", "U"), "assigns no text to USER_PROMPT"),
        ("webvoyager", WEBVOYAGER.replace('"CLOSING"', "closing"), "puts no text into a message"),
        ("webvoyager", WEBVOYAGER.replace('"""VOYAGER <', 'f"""{1}<'), "no text to USER_PROMPT"),
    ],
)
def test_a_checkout_that_is_not_as_expected_is_refused(
    name: str, source: str, message: str, tmp_path: Path
) -> None:
    folder = checkout(tmp_path, name, source)
    with pytest.raises(UsageError) as refused:
        make_protocol(name, folder)
    assert message in str(refused.value)
    assert FILES[name][0] in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_folder_without_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"evaluation/auto_eval\.py: No such file.*WebVoyager"):
        make_protocol("webvoyager", tmp_path)
