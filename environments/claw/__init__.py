"""The Claw environment: mock office services, tasks in claw-eval's format, worlds without processes."""

from environments.claw.environment import Claw

__all__ = ["Claw"]
