"""Views of one rollout for its template."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from urllib.parse import urlencode

from proctor.v1 import outcome_pb2
from proctor.v1 import rollout_service_pb2 as rollouts_pb2
from proctor.values.run import LIVE_STATES
from services.gateway.pages.rollouts.grid_view import RolloutMark, rollout_mark
from services.gateway.pages.rollouts.record import Record, Step, record_of
from services.gateway.pages.runs_table import RunRow

# Bound a page, however long a transcript and its texts are.
MAX_STEPS = 50
MAX_STEP_CHARACTERS = 60_000


@dataclass(frozen=True, slots=True)
class RolloutPosition:
    """Which rollout: a task and a rollout, both from 1."""

    task: int
    rollout: int


@dataclass(frozen=True, slots=True)
class RolloutView:
    """One rollout; nothing is recorded of it while it goes or waits. `steps` are those of this page."""

    run: RunRow
    key: RolloutPosition
    name: str
    tasks: int
    rollouts: int
    shown: RolloutMark
    instruction: str
    record: Record
    answer: str
    failure: str
    usage: outcome_pb2.TokenUsage
    seconds: float | None
    steps: Sequence[Step]
    first_step: int
    now: datetime

    @property
    def is_recorded(self) -> bool:
        return bool(self.shown.outcome)

    @property
    def is_live(self) -> bool:
        """It may still be recorded."""
        return not self.is_recorded and self.run.state in LIVE_STATES

    @property
    def grid(self) -> str:
        return f"/runs/{self.run.run_id}/rollouts"

    @property
    def following_steps(self) -> int | None:
        """The number of the first step of the next page."""
        after = self.first_step + len(self.steps)
        return after if after <= len(self.record.steps) else None

    def at(self, task: int, rollout: int) -> str:
        """The address of a rollout of the run; "" where there is none."""
        if not (1 <= task <= self.tasks and 1 <= rollout <= self.rollouts):
            return ""
        return f"{self.grid}/{task}/{rollout}"

    @property
    def socket(self) -> str:
        """The address of the socket that pushes it until it is recorded, up to its last parameter."""
        return f"{self.at(self.key.task, self.key.rollout)}/socket?"

    def from_step(self, number: int) -> str:
        query = f"?{urlencode({'step': number})}" if number > 1 else ""
        return f"{self.at(self.key.task, self.key.rollout)}{query}#transcript"

    @property
    def earlier(self) -> str:
        """The rollout before this one, of the same task or the one before."""
        task, rollout = self.key.task, self.key.rollout
        return self.at(task, rollout - 1) or self.at(task - 1, self.rollouts)

    @property
    def later(self) -> str:
        task, rollout = self.key.task, self.key.rollout
        return self.at(task, rollout + 1) or self.at(task + 1, 1)


def rollout_view(
    run: RunRow,
    order: rollouts_pb2.RolloutsOrder,
    key: RolloutPosition,
    recorded: outcome_pb2.RecordedOutcome | None,
    shown: tuple[int, int, datetime],
) -> RolloutView:
    """`shown`: the rollouts at each task, the first step of the page, and the time."""
    rollouts, first_step, now = shown
    outcome = recorded.outcome if recorded else outcome_pb2.Outcome()
    record = record_of(outcome.answer.body_json)
    first = max(1, min(first_step, len(record.steps)))
    return RolloutView(
        run=run,
        key=key,
        name=order.task_ids[key.task - 1],
        tasks=len(order.task_ids),
        rollouts=rollouts,
        shown=rollout_mark(key.rollout, recorded),
        instruction=recorded.prompt if recorded else "",
        record=record,
        answer=outcome.answer.text,
        failure=outcome.failure.message,
        usage=outcome.usage,
        seconds=outcome.timing.total_seconds if recorded and not recorded.is_reused else None,
        steps=_page_of(record.steps[first - 1 : first - 1 + MAX_STEPS]),
        first_step=first,
        now=now,
    )


def _page_of(steps: Sequence[Step]) -> Sequence[Step]:
    """The first of them, at least one, whose texts fit into a page."""
    characters = accumulate(step.characters for step in steps)
    return steps[: max(1, sum(total <= MAX_STEP_CHARACTERS for total in characters))]
