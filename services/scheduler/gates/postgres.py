"""Gates that runs were ordered with, in Postgres, and what is told of gates."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.gates.decision_event import decision_event
from services.scheduler.gates.gated_run import GateDecision, GatedRun
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.notices.postgres import record_event
from services.scheduler.runs.orders.run_gate import RunGate

# Of one run, ordered and told.
MAX_GATES = 100


class PostgresGatedRuns:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def waiting(self) -> Sequence[GatedRun]:
        rows = await self._session.fetch("list_gated_runs")
        return [_gated_from_row(str(row["run_id"]), row, _gate_from_row(row)) for row in rows]

    async def settle(
        self, token: FencingToken, gated: GatedRun, decision: GateDecision, now: datetime
    ) -> None:
        async def settle(transaction: PostgresTransaction) -> None:
            settled = await transaction.fetchval(
                "settle_run_gate",
                run_id=gated.run_id,
                base_run_id=gated.base_run_id,
                margin_points=gated.gate.margin_points,
                verdict=decision.verdict or "",
                gate_text=decision.text,
            )
            event = decision_event(gated, decision, now)
            if settled is not None and event:
                await record_event(transaction, event)

        await run_as_leader(self._session, token, settle)

    async def tell(self, run_id: str, gate: RunGate, decision: GateDecision, now: datetime) -> None:
        """Stores the gate, and what is told of it; nothing where that is stored, or the run is gone.

        Whoever reads a run may ask for a gate with any margin: of a run `MAX_GATES` are told.
        """

        async def tell(transaction: PostgresTransaction) -> None:
            row = await transaction.fetchrow("find_gated_run", run_id=run_id)
            gated = row and _gated_from_row(run_id, row, gate)
            event = gated and decision_event(gated, decision, now)
            if event and await _keep(transaction, run_id, gate, decision):
                await record_event(transaction, event)

        await self._session.run(tell)


async def _keep(transaction: PostgresTransaction, run_id: str, gate: RunGate, decision: GateDecision) -> bool:
    """Whether the gate is stored now, or was."""
    key = {"run_id": run_id, "base_run_id": gate.base_run_id, "margin_points": gate.margin_points}
    await transaction.execute(
        "keep_told_gate",
        **key,
        alpha=gate.alpha,
        verdict=decision.verdict or "",
        gate_text=decision.text,
        max_gates=MAX_GATES,
    )
    return bool(await transaction.fetchval("has_gate", **key))


def _gate_from_row(row: asyncpg.Record) -> RunGate:
    base = str(row["base_run_id"])
    return RunGate(base_run_id=base, margin_points=row["margin_points"], alpha=row["alpha"])


def _gated_from_row(run_id: str, row: asyncpg.Record, gate: RunGate) -> GatedRun:
    return GatedRun(
        run_id=run_id,
        name=row["name"] or "without a name",
        user=row["username"],
        project_id=row["project_id"],
        model=row["model"],
        gate=gate,
        state=RunState.COMPLETED,
        base_run_id=gate.base_run_id,
    )
