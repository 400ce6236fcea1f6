"""Views of one rollout for its template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from proctor.v1 import outcome_pb2, rollout_service_pb2
from proctor.values.rollout import DIFF, LOG, is_execution
from proctor.values.run import CHANGING_STATES
from services.gateway.http.paths import ARTIFACTS
from services.gateway.pages.rollouts.excerpt import Bounds, Excerpt, excerpt
from services.gateway.pages.rollouts.grid_view import RolloutBadge, rollout_badge
from services.gateway.pages.rollouts.record import DiffLine, RolloutRecord, Step, record_of
from services.gateway.pages.rows.runs import RunRow

# Bound a page, however long a rollout and its texts are.
_STEPS = Bounds(items=50, characters=60_000)
_LINES = Bounds(items=400, characters=20_000)
# Ids of the elements where parts begin.
_ANCHORS = {"step": "trajectory", "diff": "diff", "log": "log"}


@dataclass(frozen=True, slots=True)
class RolloutPosition:
    """Which rollout: task and rollout count from 0."""

    task: int
    rollout: int


@dataclass(frozen=True, slots=True)
class PageStart:
    """The numbers of the first step and of the first lines of the diff and the log that a page shows."""

    step: int = 1
    diff: int = 1
    log: int = 1


@dataclass(frozen=True, slots=True)
class RolloutView:
    """One rollout; nothing is recorded of it while it goes or waits.

    `row_rollouts`: the rollouts of its run at each task. `steps`, `diff` and `log` are the parts of its
    trajectory, its changes and its tests' output on this page.
    """

    run: RunRow
    key: RolloutPosition
    name: str
    row_rollouts: Sequence[int]
    shown: RolloutBadge
    instruction: str
    record: RolloutRecord
    answer: str
    failure: str
    usage: outcome_pb2.TokenUsage
    seconds: float | None
    steps: Excerpt[Step]
    diff: Excerpt[DiffLine]
    log: Excerpt[str]
    now: datetime

    @property
    def tasks(self) -> int:
        return len(self.row_rollouts)

    @property
    def rollouts(self) -> int:
        """Rollouts at its task."""
        return self.row_rollouts[self.key.task]

    @property
    def is_recorded(self) -> bool:
        return bool(self.shown.css_class)

    @property
    def is_live(self) -> bool:
        """It may still be recorded."""
        return not self.is_recorded and self.run.status in CHANGING_STATES

    @property
    def grid(self) -> str:
        return f"/runs/{self.run.job_id}/rollouts"

    def at(self, task: int, rollout: int) -> str:
        """The address of a rollout of the run; "" where there is none."""
        if not (0 <= task < len(self.row_rollouts) and 0 <= rollout < self.row_rollouts[task]):
            return ""
        return f"{self.grid}/{task}/{rollout}"

    @property
    def socket(self) -> str:
        """The address of the socket that pushes it until it is recorded, up to its last parameter."""
        return f"{self.at(self.key.task, self.key.rollout)}/socket?"

    def starting_at(self, part: str, number: int) -> str:
        """The address of the page where a part ("step", "diff" or "log") begins at a number."""
        query = f"?{urlencode({part: number})}" if number > 1 else ""
        return f"{self.at(self.key.task, self.key.rollout)}{query}#{_ANCHORS[part]}"

    def step(self, number: int) -> str:
        """The address of a step: on this page where it is there, else a page that begins with it."""
        if self.steps.first <= number <= self.steps.last:
            return f"#step-{number}"
        return self.starting_at("step", number)

    @property
    def diff_file(self) -> str:
        return self._artifact(DIFF)

    @property
    def log_file(self) -> str:
        return self._artifact(LOG)

    def _artifact(self, name: str) -> str:
        """The address of what a worker stored whole; "" where it did not."""
        record = self.record
        if name not in record.artifacts or not is_execution(record.execution):
            return ""
        stored = ARTIFACTS.format(job_id=self.run.job_id, sample=self.key.task, rollout=self.key.rollout)
        return f"{stored}/{record.execution}/{name}"

    @property
    def earlier(self) -> str:
        """The rollout before this one, of the same task or the one before."""
        task, rollout = self.key.task, self.key.rollout
        before = (other for other in reversed(range(task)) if self.row_rollouts[other])
        return self.at(task, rollout - 1) or next(
            (self.at(other, self.row_rollouts[other] - 1) for other in before), ""
        )

    @property
    def later(self) -> str:
        task, rollout = self.key.task, self.key.rollout
        behind = (self.at(other, 0) for other in range(task + 1, len(self.row_rollouts)))
        return self.at(task, rollout + 1) or next(filter(None, behind), "")


def rollout_view(
    run: RunRow,
    order: rollout_service_pb2.RolloutsOrder,
    key: RolloutPosition,
    recorded: outcome_pb2.RecordedOutcome | None,
    shown: tuple[Sequence[int], PageStart, datetime],
) -> RolloutView:
    """`shown`: the rollouts at each task, by its index, where the page starts, and the time."""
    rollouts, start, now = shown
    outcome = recorded.outcome if recorded else outcome_pb2.Outcome()
    record = record_of(outcome.answer.body_json)
    return RolloutView(
        run=run,
        key=key,
        name=order.task_ids[key.task],
        row_rollouts=rollouts,
        shown=rollout_badge(key.rollout, recorded),
        instruction=recorded.prompt if recorded else "",
        record=record,
        answer=outcome.answer.text,
        failure=outcome.failure.message,
        usage=outcome.usage,
        seconds=outcome.timing.total_seconds if recorded and not recorded.is_reused else None,
        steps=excerpt(record.steps, start.step, lambda step: step.characters, _STEPS),
        diff=excerpt(record.diff, start.diff, lambda line: len(line.text), _LINES),
        log=excerpt(record.log, start.log, len, _LINES),
        now=now,
    )
