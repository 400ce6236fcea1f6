"""Gates of schedules in Postgres: what is to be gated, and what is told with the decision."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from proctor.values.comparison import GateVerdict
from proctor.values.names.notices import NoticeEvent
from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader
from services.scheduler.notices.notice import Event
from services.scheduler.notices.postgres import record_event
from services.scheduler.schedules.postgres import gate_from_json
from services.scheduler.schedules.schedule import GateDecision, GatedFiring, ScheduleGate, ScheduleId


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
            if settled is not None and (kinds := _kinds(decision)):
                await record_event(transaction, _event(firing, decision, kinds, now))

        await run_as_leader(self._session, token, settle)


def _kinds(decision: GateDecision) -> tuple[NoticeEvent, ...]:
    """Who wants both hears of a failed gate once."""
    has_failed = decision.verdict is GateVerdict.FAIL
    failed = (NoticeEvent.GATE_FAILED,) if has_failed else ()
    return (*failed, NoticeEvent.DROP) if has_failed or decision.is_drop else ()


def _event(
    firing: GatedFiring, decision: GateDecision, kinds: tuple[NoticeEvent, ...], at: datetime
) -> Event:
    return Event(
        kinds=kinds,
        key=f"gate {firing.schedule_id} {firing.due_at.isoformat()}",
        user=firing.user,
        project_id=firing.project_id,
        text=f"Run {firing.name} ({firing.model}): {decision.text}",
        at=at,
        facts={
            "schedule_id": firing.schedule_id,
            "run_id": firing.run_id,
            "base_run_id": decision.base_run_id,
            "name": firing.name,
            "user": firing.user,
            "model": firing.model,
            "verdict": decision.verdict or "",
        },
    )


def _gated_from_row(row: asyncpg.Record) -> GatedFiring:
    return GatedFiring(
        schedule_id=ScheduleId(str(row["schedule_id"])),
        name=row["name"],
        user=row["username"],
        project_id=row["project_id"],
        model=row["model"],
        gate=gate_from_json(row["gate"]) or ScheduleGate(),
        due_at=row["due_at"],
        run_id=str(row["run_id"]),
        state=RunState(row["state"]) if row["state"] else None,
        base_run_id=str(row["base_run_id"] or ""),
    )
