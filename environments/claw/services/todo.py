"""A to-do list."""

from __future__ import annotations

from environments.claw.service import Service, find, route
from rollout.types import JsonObject


class Todo(Service):
    prefix = "todo"
    fixtures = {"TODO_FIXTURES": "todo/tasks.json"}
    records = ("deleted", "updated_tasks")

    def load(self) -> None:
        self.tasks = self.rows("TODO_FIXTURES", "task_id", "status")

    @route("/tasks", null={})
    def list_tasks(self, status: str = "all") -> JsonObject:
        found = [task for task in self.tasks if status in ("all", task["status"])]
        return {"tasks": found, "total": len(found)}

    @route("/tasks/update")
    def update(
        self,
        task_id: str,
        title: str | None = None,
        priority: str | None = None,
        status: str | None = None,
        tags: list[str] | None = None,
    ) -> JsonObject:
        task = find(self.tasks, "task_id", task_id, "Task")
        changes = {"title": title, "priority": priority, "status": status, "tags": tags}
        task.update({key: value for key, value in changes.items() if value is not None})
        self.record("updated_tasks", task)
        return {"status": "updated", "task": task}

    @route("/tasks/create")
    def create(
        self,
        title: str,
        description: str | None = None,
        priority: str = "medium",
        due_date: str | None = None,
    ) -> JsonObject:
        task: JsonObject = {
            "task_id": f"todo_{len(self.tasks) + 1:03d}",
            "title": title,
            "description": description or "",
            "status": "pending",
            "priority": priority,
            "due_date": due_date,
            "tags": [],
            "created_at": self.clock.stamp(),
        }
        self.tasks.append(task)
        return {"status": "created", "task": task}

    @route("/tasks/delete")
    def delete(self, task_id: str) -> JsonObject:
        task = find(self.tasks, "task_id", task_id, "Task")
        self.tasks.remove(task)
        self.record("deleted", task)
        return {"status": "deleted", "task": task}
