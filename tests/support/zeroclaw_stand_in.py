"""Does what ZeroClaw 0.8.4 does with SKILL.toml tools, as read from its source; it is no ZeroClaw.

    zeroclaw --config-dir DIR agent -a ALIAS -m PROMPT

Names, schemas, the substitution of arguments and the reading of a command's end are those of
crates/zeroclaw-runtime/src/tools/skill_tool.rs and .../agent/tool_execution.rs.
"""

import json
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def tools_of(home: Path, agent: Json) -> dict[str, Json]:
    """The tools of an agent's skill bundles, `<skill>__<tool>`."""
    found = {}
    for bundle in agent["skill_bundles"]:
        for path in sorted((home / "shared" / "skills" / bundle).glob("*/SKILL.toml")):
            manifest = tomllib.loads(path.read_text(encoding="utf-8"))
            for tool in manifest["tools"]:
                assert tool["kind"] == "shell"
                found[f"{manifest['skill']['name']}__{tool['name']}"] = tool
    return found


def function(name: str, tool: Json) -> Json:
    properties = {
        key: {"type": "string", "description": said} for key, said in tool["args"].items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    described = {"name": name, "description": tool["description"], "parameters": schema}
    return {"type": "function", "function": described}


def run(tool: Json, arguments: Json, workspace: str) -> str:
    command = tool["command"]
    for key, value in arguments.items():
        command = command.replace("{{" + key + "}}", value if isinstance(value, str) else "")
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=workspace,
        env=env,
        timeout=tool.get("timeout_secs", 60),
        capture_output=True,
        check=False,
    )
    return (done.stderr if done.returncode and done.stderr else done.stdout).decode()


def ask(provider: Json, body: Json) -> Json:
    headers = {"Authorization": f"Bearer {provider['api_key']}", "Content-Type": "application/json"}
    url = provider["uri"] + "/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        message: Json = json.load(reply)["choices"][0]["message"]
    return message


def main(home: Path, alias: str, prompt: str) -> None:
    config = tomllib.loads((home / "config.toml").read_text(encoding="utf-8"))
    agent = config["agents"][alias]
    kind, name = agent["model_provider"].split(".")
    provider = config["providers"]["models"][kind][name]
    tools = tools_of(home, agent)
    messages: list[Json] = [{"role": "user", "content": prompt}]
    offered = [function(name, tool) for name, tool in tools.items()]
    while True:
        body = {"model": provider["model"], "messages": messages, "tools": offered}
        message = ask(provider, body)
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"])
            output = run(tools[call["function"]["name"]], arguments, agent["workspace"]["path"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print("zeroclaw 0.8.4")
    else:
        _, _, folder, _, _, alias, _, prompt = sys.argv
        main(Path(folder), alias, prompt)
