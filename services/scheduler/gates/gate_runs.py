"""Gates runs once they are over. The leader decides each once and tells of what is worse."""

from dataclasses import dataclass
from typing import Generic, NoReturn

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.common.clock import Clock
from services.common.errors import DependencyUnavailable, DomainError, ErrorKind
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.gates.gated_run import GateDecision, GatedRun
from services.scheduler.gates.ports import GatedRuns, GatedT, Gates
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost

EVERY_SECONDS = 5.0
# Another look may find the service again.
_PASSING = frozenset({ErrorKind.UNAVAILABLE, ErrorKind.EXHAUSTED})
_NO_BASE = "No earlier run of the schedule has completed, so there is nothing to compare this one to."
_DELETED = "The run was deleted before it was gated."
# What was thrown stands in the log only: it may name what no user should see.
_FAULT = "The gate could not be decided; the log of the scheduler says why."

log = get_logger()


@dataclass(frozen=True, slots=True)
class GateRuns(Generic[GatedT]):
    gated: GatedRuns[GatedT]
    gates: Gates
    clock: Clock

    async def lead(self, token: FencingToken, name: str) -> NoReturn:
        """Leads until cancelled."""

        async def step() -> None:
            await self.gate_all(token)

        await every(EVERY_SECONDS, step, name=name)

    async def gate_all(self, token: FencingToken) -> None:
        """Raises `LeadershipLost`, and `DomainError` while results is away."""
        for gated in await self.gated.waiting():
            try:
                decision = await self._decision(gated)
            except DomainError as error:
                if error.reason == DependencyUnavailable.reason:
                    raise
                # Of this comparison only, so that the others need not wait for it.
                log.warning("gate waits", run_id=gated.run_id, error=error.message)
                continue
            await self.gated.settle(token, gated, decision, self.clock.now())
            log.info("run gated", run_id=gated.run_id, verdict=decision.verdict)

    async def _decision(self, gated: GatedRun) -> GateDecision:
        if gated.state is None:
            return GateDecision(text=_DELETED)
        if not gated.base_run_id:
            return GateDecision(text=_NO_BASE)
        base = gated.base_run_id
        if gated.state is not RunState.COMPLETED:
            return _undecided(f"The run ended as {gated.state}, so that it is not compared.", base)
        try:
            return await self.gates.decide(gated.run_id, base, gated.gate)
        except DomainError as error:
            if error.kind in _PASSING:
                raise
            # Such as a base that was deleted: it stays so.
            return _undecided(error.message if error.kind is not ErrorKind.INTERNAL else _FAULT, base)
        except LeadershipLost:
            raise
        except Exception:  # of a loop: one gate must not hold up the others
            log.exception("gate failed", run_id=gated.run_id)
            return _undecided(_FAULT, base)


def _undecided(text: str, base_run_id: str) -> GateDecision:
    return GateDecision(text=text, verdict=GateVerdict.INCONCLUSIVE, base_run_id=base_run_id)
