"""Judges that were named in an order: they are checked with it, and ordered once its run is complete."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol
from uuid import UUID, uuid5

from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.projects.errors import ProjectBudgetUsed
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.runs.orders.resolve_judge_order import judging_order

# A run whose answers are complete waits this long at most for its judges.
EVERY_SECONDS = 1.0
# What another attempt will not change.
_FINAL = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT, ErrorKind.FORBIDDEN})

log = get_logger()


class RunsToJudge(Protocol):
    async def to_judge(self) -> Sequence[Run]:
        """Completed runs whose judges are still to be ordered; some of them, of each user the earliest."""
        ...

    async def mark_judged(self, token: FencingToken, run: Run, refused: str, now: datetime) -> None:
        """Notes that all judges of a run are ordered, and as a change of the run which were refused and why.

        Raises `LeadershipLost`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SubmitJudges:
    runs: RunsToJudge
    submit: SubmitRun
    clock: Clock

    async def lead(self, token: FencingToken) -> NoReturn:
        """Leads until cancelled, or until another leads (`LeadershipLost`)."""

        async def step() -> None:
            await self.submit_all(token)

        await every(EVERY_SECONDS, step, name="order judges")

    async def submit_all(self, token: FencingToken) -> None:
        """Orders the judges of each complete run that names some, and notes that it did.

        The id of a judging run follows from that of the judged run: another attempt, also of another leader,
        finds the run of the first.
        """
        full: set[str] = set()
        for run in await self.runs.to_judge():
            if run.user in full:
                continue
            refusals: list[str] = []
            try:
                waits = await self._submit(run, refusals)
            except Exception:  # of a loop: one run must not hold up the others
                log.exception("judges failed", run_id=run.run_id)
                continue
            if waits is None:
                await self.runs.mark_judged(token, run, " ".join(refusals), self.clock.now())
            elif waits.kind is ErrorKind.EXHAUSTED:
                full.add(run.user)

    async def _submit(self, run: Run, refusals: list[str]) -> DomainError | None:
        """Why a judge has to wait, as for room in the queue of its user; None once all are ordered.

        What is refused for good, such as a model that is gone by now, is added to `refusals`.
        """
        for number, judge in enumerate(run.order.judges):
            judging_id = RunId(str(uuid5(UUID(run.run_id), f"judge {number}")))
            submission = Submission(judging_id, judging_order(run.run_id, run.order, judge), run.user)
            try:
                await self.submit.submit(submission)
            except DomainError as error:
                if error.kind not in _FINAL or (isinstance(error, ProjectBudgetUsed) and error.may_pass):
                    log.info("judge waits", run_id=run.run_id, model=judge.model, error=error.message)
                    return error
                log.error("judge not ordered", run_id=run.run_id, model=judge.model, error=error.message)
                refusals.append(f"The judge {judge.model} was not ordered: {error.message}")
        return None
