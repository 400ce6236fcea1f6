"""The ports of gates: what is to be decided, and who decides it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from services.scheduler.gates.gated_run import GateDecision, GatedRun
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.runs.orders.run_gate import RunGate

GatedT = TypeVar("GatedT", bound=GatedRun)


class GatedRuns(Protocol[GatedT]):
    """The leader's side."""

    async def waiting(self) -> Sequence[GatedT]:
        """Some of those that can be decided, the earliest first."""
        ...

    async def settle(self, token: FencingToken, gated: GatedT, decision: GateDecision, now: datetime) -> None:
        """Stores the decision and what is told of it in one transaction. Raises `LeadershipLost`.

        Changes nothing where a decision is stored.
        """
        ...


class Gates(Protocol):
    async def decide(self, run_id: str, base_run_id: str, gate: RunGate) -> GateDecision:
        """Raises `RemoteError`."""
        ...
