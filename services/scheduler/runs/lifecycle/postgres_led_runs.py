"""Runs in Postgres, as the leader moves them on: each write checks the term in its own transaction."""

from collections.abc import Sequence
from datetime import datetime

import asyncpg

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.planning.ports import PlanRecord
from services.scheduler.planning.shard import Shard
from services.scheduler.postgres_sessions import Connection, Queries, Sessions
from services.scheduler.progress.run_counts import RunCounts
from services.scheduler.runs.admission.run_slots import RunSlot, SlotChanges, SlotRequest, assign_slots
from services.scheduler.runs.lifecycle.json_runs import counts_to_json, facts_to_json, generation_to_json
from services.scheduler.runs.lifecycle.planned_task import PlannedTask
from services.scheduler.runs.lifecycle.postgres import run_from_row
from services.scheduler.runs.lifecycle.run import SUMMARISING, Run, RunEnding, RunId, states_before
from services.scheduler.runs.limits.postgres import PostgresLimits
from services.scheduler.runs.limits.queue_limits import QueueLimits
from services.scheduler.runs.orders.run_order import Priority


class PostgresLedRuns:
    """The leader's side of the runs."""

    def __init__(self, sessions: Sessions, limits: PostgresLimits) -> None:
        self._sessions = sessions
        self._limits = limits

    async def admit(self, token: FencingToken, now: datetime) -> SlotChanges:
        async def admit(connection: Connection) -> SlotChanges:
            await connection.execute(Queries["lock_admission"])
            limits = await self._limits.held_limits(connection)
            held = await connection.fetch(Queries["hold_places"], SUMMARISING)
            places = [_place_from_row(row) for row in held]
            claims = await connection.fetch(Queries["queue_order"], None, limits.max_running)
            moves = assign_slots(places, [_claim_from_row(row) for row in claims], limits, now)
            return await _move(connection, moves, limits, now)

        return await self._sessions.lead(token, admit)

    async def expired(self, now: datetime) -> Sequence[Run]:
        rows = await self._sessions.read(lambda connection: connection.fetch(Queries["expired_runs"], now))
        return [run_from_row(row) for row in rows]

    async def unfinished(self) -> Sequence[RunId]:
        rows = await self._sessions.read(lambda connection: connection.fetch(Queries["unfinished_runs"]))
        return _run_ids(rows)

    async def live_among(self, runs: Sequence[RunId]) -> Sequence[RunId]:
        rows = await self._sessions.read(
            lambda connection: connection.fetch(Queries["live_among"], list(runs))
        )
        return _run_ids(rows)

    async def set_step(self, token: FencingToken, run: Run, step: str) -> bool:
        return await self._write(token, "set_step", run.run_id, run.epoch, step)

    async def delete_shards(self, token: FencingToken, run: Run) -> None:
        await self._sessions.lead(
            token, lambda connection: connection.execute(Queries["drop_shards"], run.run_id, run.epoch)
        )

    async def next_shard_number(self, run: Run) -> int:
        number: int = await self._sessions.read(
            lambda connection: connection.fetchval(Queries["next_shard_number"], run.run_id)
        )
        return number

    async def add_shards(self, token: FencingToken, run: Run, shards: Sequence[Shard]) -> bool:
        columns = (
            [shard.number for shard in shards],
            [shard.task_index for shard in shards],
            [shard.rollout for shard in shards],
            [array_literal(shard.samples) for shard in shards],
        )

        async def add(connection: Connection) -> bool:
            if await connection.fetchval(Queries["hold_run"], run.run_id, run.epoch) is None:
                return False
            await connection.execute(Queries["add_shards"], run.run_id, run.epoch, *columns)
            return True

        return await self._sessions.lead(token, add)

    async def mark_planned(self, token: FencingToken, run: Run, plan: PlanRecord) -> bool:
        async def mark(connection: Connection) -> bool:
            environment = facts_to_json(plan.environment)
            values = (run.run_id, run.epoch, plan.total, environment, plan.reused_answers)
            if await connection.fetchval(Queries["mark_planned"], *values) is None:
                return False
            await connection.execute(Queries["drop_tasks"], run.run_id)
            await connection.executemany(
                Queries["add_task"],
                [(run.run_id, index, *_task_values(task)) for index, task in enumerate(plan.tasks)],
            )
            return True

        return await self._sessions.lead(token, mark)

    async def finish(self, token: FencingToken, run: Run, ending: RunEnding) -> bool:
        return await self._write(
            token,
            "finish_run",
            run.run_id,
            run.epoch,
            ending.state,
            states_before(ending.state),
            ending.now,
            ending.error.reason if ending.error else None,
            ending.error.message if ending.error else None,
            counts_to_json(ending.counts),
            facts_to_json(ending.counts.environment if ending.counts else {}),
        )

    async def forget_admissions(self, token: FencingToken, before: datetime) -> None:
        await self._sessions.lead(
            token, lambda connection: connection.execute(Queries["forget_admissions"], before)
        )

    async def mark_closed(self, token: FencingToken, run: Run, counts: RunCounts | None) -> None:
        environment = facts_to_json(counts.environment if counts else {})
        values = (run.run_id, run.epoch, counts_to_json(counts), environment)
        await self._sessions.lead(
            token, lambda connection: connection.execute(Queries["mark_closed"], *values)
        )

    async def _write(self, token: FencingToken, query: str, *values: object) -> bool:
        changed = await self._sessions.lead(
            token, lambda connection: connection.fetchval(Queries[query], *values)
        )
        return changed is not None


async def _move(
    connection: Connection, moves: SlotChanges, limits: QueueLimits, now: datetime
) -> SlotChanges:
    """The places are held, so those that give way do; what waited and was stopped meanwhile is left out."""
    if not moves.admitted:
        return moves
    preempted = await connection.fetch(Queries["give_places"], list(moves.preempted), now)
    seconds = limits.run_time_limit.total_seconds()
    admitted = await connection.fetch(Queries["take_places"], list(moves.admitted), now, seconds)
    return SlotChanges(_run_ids(admitted), _run_ids(preempted))


def _place_from_row(row: asyncpg.Record) -> RunSlot:
    return RunSlot(
        run_id=RunId(str(row["run_id"])),
        user=row["username"],
        priority=Priority(row["priority"]),
        admitted_at=row["admitted_at"],
        is_planned=row["is_planned"],
        is_closing=row["is_closing"],
    )


def _claim_from_row(row: asyncpg.Record) -> SlotRequest:
    return SlotRequest(RunId(str(row["run_id"])), row["username"], Priority(row["priority"]))


def _run_ids(rows: Sequence[asyncpg.Record]) -> Sequence[RunId]:
    return [RunId(str(row["run_id"])) for row in rows]


def array_literal(numbers: Sequence[int]) -> str:
    """Arrays of different lengths cannot travel in one array: each goes as text."""
    return "{" + ",".join(map(str, numbers)) + "}"


def _task_values(task: PlannedTask) -> tuple[object, ...]:
    return (
        task.task,
        task.version,
        task.sample_set_id,
        task.first_sample,
        task.sample_count,
        task.output_type,
        task.num_fewshot,
        task.is_stand_in,
        task.dataset,
        task.dataset_revision,
        generation_to_json(task.generation),
    )
