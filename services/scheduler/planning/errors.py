"""Errors of planning."""

from services.scheduler.runs.lifecycle.run import RunError


class RunStopped(Exception):
    """The run was stopped while it was being planned."""


class PlanningFailed(Exception):
    """The run cannot be planned, and trying again would not help."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error
