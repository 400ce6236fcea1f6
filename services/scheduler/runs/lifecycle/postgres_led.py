"""Runs in Postgres, as the leader changes them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from proctor.values.comparison import Decision
from proctor.values.names.project import is_declared
from proctor.values.run import RunCounts, RunId
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author
from services.scheduler.audit.postgres import record_change
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader, write_as_leader
from services.scheduler.notices.notice import Event
from services.scheduler.notices.postgres import record_event
from services.scheduler.runs.lifecycle.cost_limit import cost_of
from services.scheduler.runs.lifecycle.postgres import change_of
from services.scheduler.runs.lifecycle.postgres_projects import tell_of_budgets
from services.scheduler.runs.lifecycle.postgres_rows import (
    run_from_row,
    run_ids_from_rows,
    to_json,
)
from services.scheduler.runs.lifecycle.run import (
    CLOSING,
    Run,
    RunFinish,
    states_before,
)
from services.scheduler.runs.lifecycle.run_events import run_ended


class PostgresLedRuns:
    """The leader's side of the runs."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def expired(self, now: datetime) -> Sequence[Run]:
        return [run_from_row(row) for row in await self._session.fetch("list_expired_runs", now=now)]

    async def trace(self, run_id: RunId) -> str:
        return str(await self._session.fetchval("read_run_trace", run_id=run_id) or "")

    async def to_drive(self) -> Sequence[RunId]:
        return run_ids_from_rows(await self._session.fetch("list_runs_to_drive"))

    async def to_judge(self) -> Sequence[Run]:
        return [run_from_row(row) for row in await self._session.fetch("list_runs_to_judge")]

    async def mark_judged(self, token: FencingToken, run: Run, refused: str, now: datetime) -> None:
        async def mark(transaction: PostgresTransaction) -> None:
            await transaction.execute("set_judges_ordered", run_id=run.run_id)
            if refused:
                made = change_of(run.run_id, Action.REFUSE, Author(run.user, now))
                made = replace(made, detail=refused, project_id=run.order.project_id)
                await record_change(transaction, made)

        await run_as_leader(self._session, token, mark)

    async def open_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        return run_ids_from_rows(await self._session.fetch("list_open_runs", run_ids=list(runs)))

    async def set_phase(self, token: FencingToken, run: Run, phase: str, *, is_closing: bool = False) -> bool:
        return await write_as_leader(
            self._session,
            token,
            "set_phase",
            run_id=run.run_id,
            epoch=run.epoch,
            phase=phase,
            is_closing=is_closing,
        )

    async def stop(self, token: FencingToken, run: Run, decision: Decision) -> bool:
        return await write_as_leader(
            self._session,
            token,
            "stop_run",
            run_id=run.run_id,
            epoch=run.epoch,
            phase=CLOSING,
            decision=to_json(decision),
        )

    async def finish(self, token: FencingToken, run: Run, finish: RunFinish) -> bool:
        return await self._close(
            token,
            "finish_run",
            replace(run, finished_at=finish.now),
            finish.counts,
            run_ended(run, finish.state, finish.now, finish.error),
            state=finish.state,
            states_before=states_before(finish.state),
            finished_at=finish.now,
            error_reason=finish.error.reason if finish.error else None,
            error_message=finish.error.message if finish.error else None,
        )

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None:
        await self._close(token, "close_run", run, counts)

    async def _close(
        self,
        token: FencingToken,
        query: str,
        run: Run,
        counts: RunCounts | None,
        event: Event | None = None,
        /,
        **values: object,
    ) -> bool:
        """Whether the statement, which has the counts of the run, changed it."""
        named = {"run_id": run.run_id, "epoch": run.epoch}
        environment = json.dumps(dict(counts.environment) if counts else {})

        async def close(transaction: PostgresTransaction) -> bool:
            closed = await transaction.fetchval(
                query, **named, **values, final_counts=to_json(counts), environment=environment
            )
            cost = cost_of(run, counts)
            if closed and cost is not None and is_declared(run.order.project_id):
                await transaction.execute("count_cost", **named, cost=cost)
                await tell_of_budgets(transaction, run)
            if closed and event:
                await record_event(transaction, event)
            return closed is not None

        return await run_as_leader(self._session, token, close)
