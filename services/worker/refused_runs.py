"""Runs of which the provider takes no request: a wrong key or an unknown model fails the whole run."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.clock import Clock
from services.worker.shard import RunId, Shard

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
