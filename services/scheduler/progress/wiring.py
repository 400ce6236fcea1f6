"""Joins the tracker of progress with the reports of results that it receives."""

from dataclasses import dataclass

from services.common.process import usable_dispatch_proof_key
from services.scheduler.postgres import Connections
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ANY_RUN, ProgressTracker
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressParts:
    tracker: ProgressTracker
    reports: NatsProgressReports
    connections: Connections

    def touch_all(self) -> None:
        """Wakes what waits for a change of any run."""
        self.tracker.touch(ANY_RUN, self.connections.clock.monotonic())


def make_progress(settings: SchedulerSettings, connections: Connections) -> ProgressParts:
    tracker = ProgressTracker()
    reports = NatsProgressReports(
        connection=connections.jetstream.connection,
        tracker=tracker,
        clock=connections.clock,
        dispatch_proof_key=usable_dispatch_proof_key(settings.dispatch_proof_key),
    )
    return ProgressParts(tracker=tracker, reports=reports, connections=connections)
