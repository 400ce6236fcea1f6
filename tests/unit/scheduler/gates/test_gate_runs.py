"""Which of several gates are decided where one of them cannot be."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from proctor.values.comparison import GateVerdict
from proctor.values.run import RunState
from services.common.clock import SystemClock
from services.common.errors import ErrorKind, RemoteError
from services.scheduler.gates.gate_runs import GateRuns
from services.scheduler.gates.gated_run import GateDecision, GatedRun
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.orders.run_gate import RunGate

GATED = GatedRun(
    name="nightly",
    user="ann",
    project_id=1,
    model="m",
    gate=RunGate(),
    run_id="first",
    state=RunState.COMPLETED,
    base_run_id="base",
)


@dataclass
class Site:
    """Runs in memory, and gates of which that of the first run fails."""

    kind: ErrorKind
    reason: str
    settled: list[str] = field(default_factory=list)

    async def waiting(self) -> Sequence[GatedRun]:
        return [GATED, replace(GATED, run_id="second")]

    async def settle(self, _: FencingToken, gated: GatedRun, __: GateDecision, ___: datetime) -> None:
        self.settled.append(gated.run_id)

    async def decide(self, run_id: str, base_run_id: str, _: RunGate) -> GateDecision:
        if run_id == "first":
            raise RemoteError(self.kind, self.reason, "Try later.", {})
        return GateDecision(text="As good.", verdict=GateVerdict.PASS, base_run_id=base_run_id)


@pytest.mark.parametrize(
    ("kind", "reason"), [(ErrorKind.EXHAUSTED, "BUSY"), (ErrorKind.UNAVAILABLE, "READ_TOO_SLOW")]
)
async def test_a_comparison_that_waits_holds_up_no_other(kind: ErrorKind, reason: str) -> None:
    site = Site(kind, reason)
    await GateRuns(gated=site, gates=site, clock=SystemClock()).gate_all(FencingToken(1))
    assert site.settled == ["second"]


async def test_no_gate_is_asked_for_while_results_is_away() -> None:
    site = Site(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE")
    with pytest.raises(RemoteError):
        await GateRuns(gated=site, gates=site, clock=SystemClock()).gate_all(FencingToken(1))
    assert site.settled == []
