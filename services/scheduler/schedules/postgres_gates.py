"""Gates of schedules in Postgres: what is to be gated, and what is told with the decision."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.gates.decision_event import decision_event
from services.scheduler.gates.gated_run import GateDecision
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.notices.postgres import record_event
from services.scheduler.runs.orders.run_gate import RunGate, gate_from_json
from services.scheduler.schedules.schedule import GatedFiring, ScheduleId


class PostgresGatedFirings:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def waiting(self) -> Sequence[GatedFiring]:
        return [_gated_from_row(row) for row in await self._session.fetch("list_gated_firings")]

    async def settle(
        self, token: FencingToken, firing: GatedFiring, decision: GateDecision, now: datetime
    ) -> None:
        async def settle(transaction: PostgresTransaction) -> None:
            settled = await transaction.fetchval(
                "settle_gate",
                schedule_id=firing.schedule_id,
                due_at=firing.due_at,
                verdict=decision.verdict or "",
                base_run_id=decision.base_run_id or None,
                gate_text=decision.text,
            )
            event = decision_event(firing, decision, now, {"schedule_id": firing.schedule_id})
            if settled is not None and event:
                await record_event(transaction, event)

        await run_as_leader(self._session, token, settle)


def _gated_from_row(row: asyncpg.Record) -> GatedFiring:
    return GatedFiring(
        schedule_id=ScheduleId(str(row["schedule_id"])),
        name=row["name"],
        user=row["username"],
        project_id=row["project_id"],
        model=row["model"],
        gate=gate_from_json(row["gate"]) or RunGate(),
        due_at=row["due_at"],
        run_id=str(row["run_id"]),
        state=RunState(row["state"]) if row["state"] else None,
        base_run_id=str(row["base_run_id"] or ""),
    )
