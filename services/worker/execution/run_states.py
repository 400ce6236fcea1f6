"""The states of runs, and the runs whose requests the provider refuses."""

from dataclasses import dataclass
from datetime import UTC, datetime

from proctor.values.run import RunId
from services.common.clock import Clock
from services.worker.execution.shard import Shard

NEVER = datetime.max.replace(tzinfo=UTC)
# A server may refuse one request by mistake among many that it answers, but not so many in a row.
REFUSALS_IN_A_ROW = 8
# Bounds the memory; a forgotten run counts as one without an answer from here.
_MAX_CACHED_RUNS = 1024


@dataclass(frozen=True, slots=True)
class RunControl:
    """`has_slot` is False while the run waits or is paused; then it has no deadline either."""

    epoch: int
    is_final: bool
    is_request_retry_budget_spent: bool = False
    has_slot: bool = True
    deadline: datetime | None = None


class RunStates:
    """The latest RunControl of each run. A run without one counts as running."""

    def __init__(self) -> None:
        self._controls: dict[RunId, RunControl] = {}

    def put(self, run_id: RunId, control: RunControl) -> None:
        self._controls[run_id] = control

    def forget(self, run_id: RunId) -> None:
        self._controls.pop(run_id, None)

    def is_current(self, shard: Shard) -> bool:
        """Whether the shard's run is neither finished nor in a later epoch."""
        control = self._controls.get(shard.run_id)
        # Announcements and shards travel apart: an older state says nothing about a newer epoch.
        if control is None or control.epoch < shard.epoch:
            return True
        return control.epoch == shard.epoch and not control.is_final

    def may_start(self, shard: Shard) -> bool:
        """Whether the shard is current and its run holds a run slot."""
        return self.is_current(shard) and self.has_slot(shard)

    def has_slot(self, shard: Shard) -> bool:
        control = self._control(shard)
        return control is None or control.has_slot

    def deadline(self, shard: Shard) -> datetime:
        """The run's present deadline, before that of the message: time without a slot does not count."""
        control = self._control(shard)
        if control is not None and not control.has_slot:
            # The time without a slot does not count, and a request under way may still be answered.
            return NEVER
        return control.deadline if control and control.deadline else shard.deadline

    def may_retry_request(self, shard: Shard) -> bool:
        """Whether the run's request retry budget is not spent."""
        control = self._control(shard)
        return control is None or not control.is_request_retry_budget_spent

    def _control(self, shard: Shard) -> RunControl | None:
        """The control of the shard's own epoch."""
        control = self._controls.get(shard.run_id)
        return control if control and control.epoch == shard.epoch else None


class RefusedRuns:
    """Runs of which the provider refuses every request: a wrong key or an unknown model fails the whole run.

    One certain refusal is enough for a run without an answer from here; otherwise it takes several in a row.
    A refusal is forgotten after a while, when another request is worth a try; a retried run has a new epoch.
    """

    def __init__(self, clock: Clock, remembered_seconds: float = 60.0) -> None:
        self._clock = clock
        self._remembered_seconds = remembered_seconds
        self._since_answer: dict[tuple[RunId, int], int] = {}
        self._answered_at: dict[tuple[RunId, int], float] = {}
        # Run and epoch to the provider's reason, and when it came.
        self._refusals: dict[tuple[RunId, int], tuple[str, float]] = {}

    def on_answer(self, shard: Shard) -> None:
        key = (shard.run_id, shard.epoch)
        self._since_answer[key] = 0
        self._answered_at[key] = self._clock.monotonic()
        if self._refusals:
            self._refusals.pop(key, None)
        if len(self._since_answer) > _MAX_CACHED_RUNS:
            forgotten = next(iter(self._since_answer))
            del self._since_answer[forgotten]
            self._answered_at.pop(forgotten, None)

    def answered_at(self, shard: Shard) -> float:
        """When the run had its last answer from here, by the monotonic clock."""
        return self._answered_at.get((shard.run_id, shard.epoch), float("-inf"))

    def give_up(self, shard: Shard, reason: str) -> None:
        """The whole run now counts as refused."""
        self._refusals[shard.run_id, shard.epoch] = (reason, self._clock.monotonic())

    def on_refusal(self, shard: Shard, reason: str, *, is_certain: bool = True) -> bool:
        """Whether the whole run now counts as refused."""
        key = (shard.run_id, shard.epoch)
        # No entry means no answer yet: then one certain refusal is enough.
        refusals = self._since_answer.get(key, REFUSALS_IN_A_ROW if is_certain else 0) + 1
        if refusals < REFUSALS_IN_A_ROW:
            self._since_answer[key] = refusals
            return False
        self._refusals[key] = (reason, self._clock.monotonic())
        return True

    def reason(self, shard: Shard) -> str | None:
        """Why requests of this run are not sent."""
        if not self._refusals:
            return None
        return self.reasons.get((shard.run_id, shard.epoch))

    @property
    def reasons(self) -> dict[tuple[RunId, int], str]:
        """Run and epoch to the provider's own reason."""
        oldest = self._clock.monotonic() - self._remembered_seconds
        self._refusals = {key: refusal for key, refusal in self._refusals.items() if refusal[1] > oldest}
        return {key: reason for key, (reason, _) in self._refusals.items()}
