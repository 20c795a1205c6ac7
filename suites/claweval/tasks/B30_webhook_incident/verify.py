"""The runbook was followed, and the tickets really have their new priority and tag."""

from environments.claw.evidence import Evidence, Score

INTEGRATION = "INT-41"
JOBS = {"JOB-01", "JOB-02"}
TICKETS = {"TK-2301": "high", "TK-2303": "critical", "TK-2304": "high", "TK-2307": "critical"}


def verify(e: Evidence) -> Score:
    integrations = {
        update["integration_id"]: update["changes"].get("status")
        for update in e.audit["config"]["updates"]
    }
    # The last state counts: each entry is the whole record as it was after a change.
    jobs = {job["job_id"]: job["enabled"] for job in e.audit["scheduler"]["updated_jobs"]}
    tickets = {ticket["ticket_id"]: ticket for ticket in e.audit["helpdesk"]["updated_tickets"]}
    right = [
        ticket_id
        for ticket_id, priority in TICKETS.items()
        if ticket_id in tickets
        and tickets[ticket_id]["priority"] == priority
        and tickets[ticket_id]["tags"] == ["incident-0623"]
    ]
    sent = e.audit["gmail"]["sent_messages"]
    bridge = [mail for mail in sent if "ops-bridge@tallybird.example" in mail["to"]]
    text = " ".join(f"{mail['subject']} {mail['body']}" for mail in bridge)
    degraded = integrations == {INTEGRATION: "degraded"}
    disabled = {job for job, enabled in jobs.items() if not enabled} == JOBS
    tagged = len(right) == len(TICKETS) and set(tickets) == set(TICKETS)
    told = len(bridge) == 1 and all(name in text for name in (INTEGRATION, *JOBS, *TICKETS))
    score = Score()
    score.add(1, degraded, "INT-41, and only it, is degraded")
    score.add(2, disabled, "JOB-01 and JOB-02, and no other jobs, are disabled")
    score.add(
        2, tagged, f"{', '.join(TICKETS)} have their priority and tag; no other ticket was changed"
    )
    score.add(1, told, "one mail to the bridge names the integration, the jobs and the tickets")
    score.add(4, degraded and disabled and tagged and told, "all of the runbook is done")
    score.add(0.5, e.said(INTEGRATION, *JOBS, *TICKETS), "the answer names them as well")
    return score
