"""Runs in Postgres, as users submit, read and stop them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID, uuid5

import asyncpg

from services.scheduler.datasets.dataset import is_dataset_id
from services.scheduler.datasets.dataset_errors import DatasetNotFound
from services.scheduler.postgres_sessions import Connection, Queries, Sessions
from services.scheduler.runs.admission.run_estimate import PastRun
from services.scheduler.runs.lifecycle.errors import (
    PriorityNotAllowed,
    QueueFull,
    RequestIdTaken,
    RunNotFound,
    RunOfBatch,
)
from services.scheduler.runs.lifecycle.json_runs import (
    counts_from_json,
    facts_from_json,
    facts_to_json,
    generation_from_json,
    price_from_json,
    price_to_json,
)
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.run import SUMMARISING, Run, RunError, RunId, RunState, states_before
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.model_price import TokenUsage
from services.scheduler.runs.orders.json_orders import order_from_json, order_to_json
from services.scheduler.runs.orders.run_order import ScoringMethod
from services.scheduler.runs.reads.estimate_run import PastUsage
from services.scheduler.runs.reads.run_list import RunCursor, RunFilter, RunPage
from services.scheduler.suites.errors import UnknownSuite
from services.scheduler.suites.suite import OutputType


def run_from_row(row: asyncpg.Record) -> Run:
    return Run(
        run_id=RunId(str(row["run_id"])),
        order=order_from_json(row["ordered"]),
        user=row["username"],
        pool=row["pool"],
        scoring_method=ScoringMethod(row["scoring_method"]),
        created_at=row["created_at"],
        state=RunState(row["state"]),
        epoch=row["epoch"],
        step=row["step"],
        planned_epoch=row["planned_epoch"],
        is_closed=row["is_closed"],
        total=row["total"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        deadline=row["deadline"],
        error=RunError(row["error_reason"], row["error_message"]) if row["error_reason"] else None,
        environment=facts_from_json(row["environment"]),
        final_counts=counts_from_json(row["final_counts"]),
        suite_version=row["suite_version"] or 0,
        price=price_from_json(row["price"]),
        reused_answers=row["reused_answers"],
        admitted_at=row["admitted_at"],
        ran_seconds=row["ran_seconds"],
        dataset_name=row["dataset_name"],
        expires_at=row["expires_at"],
    )


def past_run_from_row(row: asyncpg.Record) -> PastRun:
    order = order_from_json(row["ordered"])
    return PastRun(order.tasks, order.limit, order.rollouts, row["total"], row["seconds"])


def past_usage_from_row(row: asyncpg.Record) -> PastUsage:
    counts = counts_from_json(row["final_counts"])
    return PastUsage(past_run_from_row(row), counts.usage if counts else TokenUsage())


def task_from_row(row: asyncpg.Record) -> PlannedTask:
    return PlannedTask(
        task=row["task"],
        version=row["version"],
        sample_set_id=row["sample_set_id"],
        first_sample=row["first_sample"],
        sample_count=row["sample_count"],
        output_type=OutputType(row["output_type"]),
        num_fewshot=row["num_fewshot"],
        is_stand_in=row["is_stand_in"],
        dataset=row["dataset"],
        dataset_revision=row["dataset_revision"],
        generation=generation_from_json(row["generation"]),
    )


RETRY_AFTER_SECONDS = 30

# Newer than any run: a value, not a null, so that the first page is read by the index as well.
_BEFORE_ALL = RunCursor(datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff", total=0)


class PostgresRuns:
    """Keeps runs in Postgres."""

    def __init__(self, sessions: Sessions, limits: PostgresLimits) -> None:
        self._sessions = sessions
        self._limits = limits

    async def add(self, run: Run, request_id: str) -> Run:
        try:
            return await self._sessions.run(lambda connection: self.add_in(connection, run, request_id))
        except asyncpg.ForeignKeyViolationError as error:
            # Deleted since it was looked up.
            others = f"other versions of {run.order.suite}"
            raise UnknownSuite(suite=run.suite_name, supported=others) from error

    async def add_in(self, connection: Connection, run: Run, request_id: str) -> Run:
        """As `add`, in a transaction that stores something beside the run."""
        # Two users may choose the same id; for each it is one of his own.
        request = uuid5(UUID(request_id), run.user) if request_id else None
        await connection.execute(Queries["lock_user"], run.user)
        found = await connection.fetchrow(Queries["find_ordered"], run.run_id, request)
        if found is not None:
            return _same_order(run_from_row(found), run, request_id)
        limits = await self._limits.held_limits(connection)
        _check_priority(run, limits)
        await _check_queue(connection, run.user, limits.max_pending_per_user)
        await _keep_dataset(connection, run.order.dataset_id)
        await _insert(connection, run, request)
        return run

    async def get(self, run_id: RunId) -> Run:
        row = await self._sessions.read(lambda connection: connection.fetchrow(Queries["get_run"], run_id))
        if row is None:
            raise RunNotFound(run_id=run_id)
        return run_from_row(row)

    async def page(self, wanted: RunFilter, size: int, after: RunCursor | None) -> RunPage:
        filters = (
            wanted.state,
            wanted.suite or None,
            wanted.model or None,
            wanted.project_id,
            wanted.kind,
            wanted.dataset_id or None,
        )
        start = after or _BEFORE_ALL
        behind = (start.created_at, start.run_id)

        async def page(connection: Connection) -> RunPage:
            await connection.execute(Queries["plan_by_values"])
            rows = await connection.fetch(Queries["list_runs"], *filters, *behind, size)
            total = after.total if after else await connection.fetchval(Queries["count_runs"], *filters)
            return RunPage([run_from_row(row) for row in rows], total)

        return await self._sessions.run(page)

    async def cancel(self, run_id: RunId, now: datetime) -> Run | None:
        states = states_before(RunState.CANCELLED)
        row = await self._sessions.read(
            lambda connection: connection.fetchrow(Queries["cancel_run"], run_id, states, now, SUMMARISING)
        )
        return run_from_row(row) if row else None

    async def requeue(self, run_id: RunId, now: datetime) -> Run | None:
        batch_id = await self._sessions.read(
            lambda connection: connection.fetchval(Queries["batch_of_run"], run_id)
        )
        if batch_id is not None:
            raise RunOfBatch(run_id=run_id, batch_id=batch_id)
        final_states = [state for state in states_before(RunState.PENDING) if state.is_final]
        return await self._let_wait("requeue_run", run_id, final_states, now)

    async def pause(self, run_id: RunId, now: datetime) -> Run | None:
        states = states_before(RunState.PAUSED)
        row = await self._sessions.read(
            lambda connection: connection.fetchrow(Queries["pause_run"], run_id, states, now, SUMMARISING)
        )
        return run_from_row(row) if row else None

    async def resume(self, run_id: RunId, now: datetime) -> Run | None:
        return await self._let_wait("resume_run", run_id, now, is_counted=True)

    async def past_usage(self, run: Run) -> Sequence[PastUsage]:
        order = run.order
        wanted = (order.subject, order.model, run.scoring_method, json.dumps(order.token_terms))
        rows = await self._sessions.read(lambda connection: connection.fetch(Queries["past_usage"], *wanted))
        return [past_usage_from_row(row) for row in rows]

    async def planned_tasks(self, run_id: RunId) -> tuple[PlannedTask, ...]:
        rows = await self._sessions.read(
            lambda connection: connection.fetch(Queries["planned_tasks"], run_id)
        )
        return tuple(task_from_row(row) for row in rows)

    async def _let_wait(
        self, query: str, run_id: RunId, *values: object, is_counted: bool = False
    ) -> Run | None:
        """The run is pending again, as urgent as its user may have it now.

        He has to have room for it, unless it is counted among what he has waiting or paused.
        """
        user = (await self.get(run_id)).user

        async def let_wait(connection: Connection) -> Run | None:
            await connection.execute(Queries["lock_user"], user)
            row = await connection.fetchrow(Queries[query], run_id, *values)
            if row is None:
                return None
            limits = await self._limits.held_limits(connection)
            if not is_counted:
                await _check_queue(connection, user, limits.max_pending_per_user, own=1)
            return await _as_urgent_as_allowed(connection, run_from_row(row), limits)

        return await self._sessions.run(let_wait)


def _same_order(found: Run, wanted: Run, request_id: str) -> Run:
    if found.order != wanted.order:
        dataset_id = found.order.dataset_id
        raise RequestIdTaken(request_id=request_id, run_id=found.run_id, dataset_id=dataset_id)
    return found


async def _as_urgent_as_allowed(connection: Connection, run: Run, limits: QueueLimits) -> Run:
    allowed = run.limited_to(limits.highest_priority(run.user))
    if allowed != run:
        await connection.execute(Queries["lower_priority"], run.run_id, allowed.order.priority)
    return allowed


async def _check_queue(connection: Connection, user: str, max_pending: int, own: int = 0) -> None:
    """`own`: runs among the pending ones that ask to be."""
    if await connection.fetchval(Queries["count_pending_of_user"], user) - own >= max_pending:
        raise QueueFull(user=user, limit=max_pending, retry_after_seconds=RETRY_AFTER_SECONDS)


def _check_priority(run: Run, limits: QueueLimits) -> None:
    allowed = limits.allowed_priorities(run.user)
    if run.order.priority not in allowed:
        names = ", ".join(priority.name.lower() for priority in allowed)
        raise PriorityNotAllowed(user=run.user, priority=run.order.priority.name.lower(), allowed=names)


async def _keep_dataset(connection: Connection, dataset_id: str) -> None:
    """Raises `DatasetNotFound` where it was deleted since it was looked up."""
    query = "keep_dataset" if is_dataset_id(dataset_id) else "keep_file"
    if dataset_id and not await connection.fetchval(Queries[query], dataset_id):
        raise DatasetNotFound(dataset_id=dataset_id)


async def _insert(connection: Connection, run: Run, request: UUID | None) -> None:
    order = run.order
    await connection.execute(
        Queries["insert_run"],
        run.run_id,
        request,
        run.user,
        order.project_id,
        order.subject,
        order.model,
        run.pool,
        order.priority,
        order_to_json(order),
        run.scoring_method,
        run.created_at,
        facts_to_json(run.environment),
        run.suite_version,
        price_to_json(run.price),
        order.dataset_id or None,
        run.dataset_name,
        run.expires_at,
    )
