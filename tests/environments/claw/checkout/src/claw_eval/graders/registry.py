from .base import load


def get_grader(task_id, tasks_dir, task_dir):
    return load(f"grader_{task_id}", task_dir / "grader.py")()
