"""Scheduled jobs and their execution history."""

from __future__ import annotations

from environments.claw.service import Service, find, pick, route
from rollout.types import JsonObject

REQUIRED = ("job_id", "name", "cron_expression", "enabled")


class Scheduler(Service):
    prefix = "scheduler"
    fixtures = {"SCHEDULER_FIXTURES": "scheduler/jobs.json"}
    records = ("created_jobs", "updated_jobs", "deleted_jobs")

    def load(self) -> None:
        self.jobs = self.rows("SCHEDULER_FIXTURES", *REQUIRED)

    @route("/jobs", null={})
    def list_jobs(
        self, status: str | None = None, enabled: bool | None = None, tag: str | None = None
    ) -> JsonObject:
        found = [
            _summary(job)
            for job in self.jobs
            if (not status or job.get("last_status") == status)
            and (enabled is None or job["enabled"] == enabled)
            and (not tag or tag in job.get("tags", []))
        ]
        return {"jobs": found, "total": len(found)}

    @route("/jobs/get")
    def job(self, job_id: str) -> JsonObject:
        return find(self.jobs, "job_id", job_id, "Job")

    @route("/jobs/create")
    def create(
        self,
        name: str,
        cron_expression: str,
        action: str,
        enabled: bool = True,
        tags: list[str] | None = None,
        created_by: str | None = None,
    ) -> JsonObject:
        job = {
            "job_id": f"JOB-{len(self.jobs) + 1:03d}",
            "name": name,
            "cron_expression": cron_expression,
            "action": action,
            "enabled": enabled,
            "last_run": None,
            "next_run": None,
            "last_status": None,
            "created_by": created_by,
            "tags": tags or [],
            "created_at": self.clock.stamp(),
            "execution_history": [],
        }
        self.jobs.append(job)
        self.record("created_jobs", job)
        return {"status": "created", "job": job}

    @route("/jobs/update")
    def update(
        self,
        job_id: str,
        enabled: bool | None = None,
        cron_expression: str | None = None,
        name: str | None = None,
        action: str | None = None,
        tags: list[str] | None = None,
    ) -> JsonObject:
        job = find(self.jobs, "job_id", job_id, "Job")
        changes = {
            "enabled": enabled,
            "cron_expression": cron_expression,
            "name": name,
            "action": action,
            "tags": tags,
        }
        job.update({key: value for key, value in changes.items() if value is not None})
        self.record("updated_jobs", job)
        return {"status": "updated", "job": job}

    @route("/jobs/delete")
    def delete(self, job_id: str) -> JsonObject:
        job = find(self.jobs, "job_id", job_id, "Job")
        self.jobs.remove(job)
        self.record("deleted_jobs", job)
        return {"status": "deleted", "job": job}

    @route("/jobs/history")
    def history(self, job_id: str, limit: int = 10) -> JsonObject:
        runs = find(self.jobs, "job_id", job_id, "Job").get("execution_history", [])
        return {"job_id": job_id, "history": runs[:limit], "total": len(runs)}


def _summary(job: JsonObject) -> JsonObject:
    optional = {key: job.get(key) for key in ("last_status", "last_run", "next_run")}
    return {**pick(job, REQUIRED), **optional, "tags": job.get("tags", [])}
