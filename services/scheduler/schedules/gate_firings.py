"""Gates the runs of schedules once they are over. The leader decides each once and tells of what is worse."""

from dataclasses import dataclass
from typing import NoReturn

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.common.clock import Clock
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.schedules.ports import GatedFirings, Gates
from services.scheduler.schedules.schedule import GateDecision, GatedFiring

EVERY_SECONDS = 5.0
# Another look may find the service again.
_PASSING = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.EXHAUSTED})
_NO_BASE = "No earlier run of the schedule has completed, so there is nothing to compare this one to."
_DELETED = "The run was deleted before it was gated."
# What was thrown stands in the log only: it may name what no user should see.
_FAULT = "The gate could not be decided; the log of the scheduler says why."

log = get_logger()


@dataclass(frozen=True, slots=True)
class GateFirings:
    firings: GatedFirings
    gates: Gates
    clock: Clock

    async def lead(self, token: FencingToken) -> NoReturn:
        """Leads until cancelled."""

        async def step() -> None:
            await self.gate_all(token)

        await every(EVERY_SECONDS, step, name="gate firings")

    async def gate_all(self, token: FencingToken) -> None:
        """Raises `LeadershipLost`, and `DomainError` while results is away."""
        for firing in await self.firings.waiting():
            try:
                decision = await self._decision(firing)
            except DomainError as error:
                if error.reason == DependencyUnavailable.reason:
                    raise
                # Of this comparison only, so that the others need not wait for it.
                log.warning("gate waits", run_id=firing.run_id, error=error.message)
                continue
            await self.firings.settle(token, firing, decision, self.clock.now())
            log.info(
                "firing gated",
                schedule_id=firing.schedule_id,
                run_id=firing.run_id,
                verdict=decision.verdict,
            )

    async def _decision(self, firing: GatedFiring) -> GateDecision:
        if firing.state is None:
            return GateDecision(text=_DELETED)
        if not firing.base_run_id:
            return GateDecision(text=_NO_BASE)
        base = firing.base_run_id
        if firing.state is not RunState.COMPLETED:
            return _undecided(f"The run ended as {firing.state}, so that it is not compared.", base)
        try:
            return await self.gates.decide(firing.run_id, base, firing.gate)
        except DomainError as error:
            if error.kind in _PASSING:
                raise
            # Such as a base that was deleted: it stays so.
            return _undecided(error.message if error.kind is not ErrorKind.INTERNAL else _FAULT, base)
        except LeadershipLost:
            raise
        except Exception:  # of a loop: one gate must not hold up the others
            log.exception("gate failed", schedule_id=firing.schedule_id, run_id=firing.run_id)
            return _undecided(_FAULT, base)


def _undecided(text: str, base_run_id: str) -> GateDecision:
    return GateDecision(text=text, verdict=GateVerdict.INCONCLUSIVE, base_run_id=base_run_id)
