"""What the worker knows of live runs: looked at before each shard and while one is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from services.worker.shard import RunId, Shard

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
