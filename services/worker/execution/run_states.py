"""What the worker knows of live runs: their states, and those that a provider rejects as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from services.common.clock import Clock
from services.worker.execution.shard import RunId, Shard

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RunControl:
    epoch: int
    is_final: bool
    is_retry_budget_spent: bool = False
    # False while the run waits or is paused.
    has_place: bool = True
    # None where it is not told; a run without a place has none.
    deadline: datetime | None = None


class RunStates:
    """The last word on each run that was heard of. A run that was not heard of is live."""

    def __init__(self) -> None:
        self._controls: dict[RunId, RunControl] = {}

    def put(self, run_id: RunId, control: RunControl) -> None:
        self._controls[run_id] = control

    def forget(self, run_id: RunId) -> None:
        self._controls.pop(run_id, None)

    def wants(self, shard: Shard) -> bool:
        """Whether the run still waits for this shard: neither ended nor gone on to a later epoch."""
        control = self._controls.get(shard.run_id)
        if control is None or control.epoch < shard.epoch:
            return True
        return control.epoch == shard.epoch and not control.is_final

    def may_begin(self, shard: Shard) -> bool:
        """Whether the run wants this shard and has a place among those that are running."""
        return self.wants(shard) and self.has_place(shard)

    def has_place(self, shard: Shard) -> bool:
        control = self._control(shard)
        return control is None or control.has_place

    def deadline_of(self, shard: Shard) -> datetime:
        """As it is now: that of a shard is of when it was sent, and time without a place does not count."""
        control = self._control(shard)
        if control is not None and not control.has_place:
            return _NEVER
        return control.deadline if control and control.deadline else shard.deadline

    def may_try_again(self, shard: Shard) -> bool:
        """Whether the run has anything left to spend on requests that failed."""
        control = self._control(shard)
        return control is None or not control.is_retry_budget_spent

    def _control(self, shard: Shard) -> RunControl | None:
        """What was heard of the epoch of this shard."""
        control = self._controls.get(shard.run_id)
        return control if control and control.epoch == shard.epoch else None


# A server may refuse one request by mistake among many that it answers; so many in a row are none.
REFUSALS_IN_A_ROW = 8
_REMEMBERED_RUNS = 1024


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    at: float


class RefusedRuns:
    """The first refusal tells for a run without an answer from here, where it is certain to be about more
    than its request; else several without an answer in between.

    A refusal is forgotten after a while, when asking is worth another try; a retry has a new epoch.
    """

    def __init__(self, clock: Clock, remembered_seconds: float = 60.0) -> None:
        self._clock = clock
        self._remembered_seconds = remembered_seconds
        self._since_answer: dict[tuple[RunId, int], int] = {}
        self._refusals: dict[tuple[RunId, int], _Refusal] = {}

    def answered(self, shard: Shard) -> None:
        key = (shard.run_id, shard.epoch)
        self._since_answer[key] = 0
        if self._refusals:
            self._refusals.pop(key, None)
        if len(self._since_answer) > _REMEMBERED_RUNS:
            del self._since_answer[next(iter(self._since_answer))]

    def refuse(self, shard: Shard, reason: str, *, is_certain: bool = True) -> bool:
        """Whether this refusal is the whole run's."""
        key = (shard.run_id, shard.epoch)
        refusals = self._since_answer.get(key, REFUSALS_IN_A_ROW if is_certain else 0) + 1
        if refusals < REFUSALS_IN_A_ROW:
            self._since_answer[key] = refusals
            return False
        self._refusals[key] = _Refusal(reason, self._clock.monotonic())
        return True

    def reason_for(self, shard: Shard) -> str | None:
        """Why there is no use in asking for this run."""
        if not self._refusals:
            return None
        return self.reasons.get((shard.run_id, shard.epoch))

    @property
    def reasons(self) -> dict[tuple[RunId, int], str]:
        """Run and epoch to the provider's own reason."""
        oldest = self._clock.monotonic() - self._remembered_seconds
        self._refusals = {key: no for key, no in self._refusals.items() if no.at > oldest}
        return {key: refusal.reason for key, refusal in self._refusals.items()}
