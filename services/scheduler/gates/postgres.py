"""Gates that runs were ordered with, in Postgres."""

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


class PostgresGatedRuns:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def waiting(self) -> Sequence[GatedRun]:
        return [_gated_from_row(row) for row in await self._session.fetch("list_gated_runs")]

    async def settle(
        self, token: FencingToken, gated: GatedRun, decision: GateDecision, now: datetime
    ) -> None:
        async def settle(transaction: PostgresTransaction) -> None:
            settled = await transaction.fetchval(
                "settle_run_gate",
                run_id=gated.run_id,
                verdict=decision.verdict or "",
                gate_text=decision.text,
            )
            event = decision_event(gated, decision, now, f"{gated.run_id} {gated.base_run_id}", {})
            if settled is not None and event:
                await record_event(transaction, event)

        await run_as_leader(self._session, token, settle)


def _gated_from_row(row: asyncpg.Record) -> GatedRun:
    base = str(row["base_run_id"])
    return GatedRun(
        run_id=str(row["run_id"]),
        name=row["name"] or "without a name",
        user=row["username"],
        project_id=row["project_id"],
        model=row["model"],
        gate=RunGate(base_run_id=base, margin_points=row["margin_points"], alpha=row["alpha"]),
        state=RunState.COMPLETED,
        base_run_id=base,
    )
