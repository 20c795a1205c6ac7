import importlib.util
from pathlib import Path

TASKS = Path(__file__).parents[3] / "tasks"


class AbstractGrader:
    @staticmethod
    def text_of(message):
        return "".join(b["text"] for b in message.message.content if b["type"] == "text")


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Grader


def load_peer_grader(task_id):
    return load(f"peer_{task_id}", TASKS / task_id / "grader.py")
