"""Which of several gates are decided where one of them cannot be."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.common.clock import SystemClock
from services.common.errors import ErrorKind, RemoteError
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.schedules.gate_firings import GateFirings
from services.scheduler.schedules.schedule import GateDecision, GatedFiring, ScheduleGate, ScheduleId

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FIRING = GatedFiring(
    schedule_id=ScheduleId("s"),
    name="nightly",
    user="ann",
    project_id=1,
    model="m",
    gate=ScheduleGate(),
    due_at=NOW,
    run_id="first",
    state=RunState.COMPLETED,
    base_run_id="base",
)


@dataclass
class Site:
    """Firings in memory, and gates of which that of the first run fails."""

    kind: ErrorKind
    reason: str
    settled: list[str] = field(default_factory=list)

    async def waiting(self) -> Sequence[GatedFiring]:
        return [FIRING, replace(FIRING, run_id="second")]

    async def settle(self, _: FencingToken, firing: GatedFiring, __: GateDecision, ___: datetime) -> None:
        self.settled.append(firing.run_id)

    async def decide(self, run_id: str, base_run_id: str, _: ScheduleGate) -> GateDecision:
        if run_id == "first":
            raise RemoteError(self.kind, self.reason, "Try later.", {})
        return GateDecision(text="As good.", verdict=GateVerdict.PASS, base_run_id=base_run_id)


@pytest.mark.parametrize(
    ("kind", "reason"), [(ErrorKind.EXHAUSTED, "BUSY"), (ErrorKind.UNAVAILABLE, "READ_TOO_SLOW")]
)
async def test_a_comparison_that_waits_holds_up_no_other(kind: ErrorKind, reason: str) -> None:
    site = Site(kind, reason)
    await GateFirings(firings=site, gates=site, clock=SystemClock()).gate_all(FencingToken(1))
    assert site.settled == ["second"]


async def test_no_gate_is_asked_for_while_results_is_away() -> None:
    site = Site(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE")
    with pytest.raises(RemoteError):
        await GateFirings(firings=site, gates=site, clock=SystemClock()).gate_all(FencingToken(1))
    assert site.settled == []
