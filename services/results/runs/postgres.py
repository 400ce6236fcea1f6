"""The records of runs in Postgres: plans, epochs, counts, summaries."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import asyncpg
import orjson

from services.results.postgres_session import PostgresSession, PostgresTransaction, storable
from services.results.runs.errors import EpochNotOpen, EpochOver, RecordNotFound, RunIncomplete
from services.results.runs.json_records import (
    groups_from_json,
    groups_to_json,
    price_from_json,
    price_to_json,
    provenance_from_json,
    scoring_from_json,
    to_json,
)
from services.results.runs.ports import ShardKey
from services.results.runs.run_counts import RunCounts, TaskCount
from services.results.runs.run_plan import FinalState, PlannedTask, RunFacts, RunPlan, RunRecord
from services.results.samples.errors import SampleSetNotFound
from services.results.scoring.recipe import ScoringMethod
from services.results.values import FailureClass, TokenUsage


class PostgresRunRecords:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        async def once() -> None:
            async with self._session.transaction() as transaction:
                if not await _add(transaction, plan, epoch):
                    await _open_epoch(transaction, plan.run_id, epoch)

        await self._session.repeat(once)
        return await self.get(plan.run_id)

    async def get(self, run_id: str) -> RunRecord:
        record = await self.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        return record

    async def find(self, run_id: str) -> RunRecord | None:
        row = await self._session.fetchrow("read_run_record", run_id)
        if row is None:
            return None
        tasks = await self._session.fetch("read_run_tasks", run_id)
        plan = RunPlan(
            run_id,
            tuple(_task(task) for task in tasks),
            row["rollouts"],
            ScoringMethod(row["scoring_method"]),
            row["is_truncated_left"],
            _facts(row),
            groups_from_json(row["groups"]),
        )
        return RunRecord(plan, row["epoch"], row["is_frozen"], FinalState(row["state"]), row["closed_at"])

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardKey]) -> list[RunCounts]:
        asked = [run_id for run_id, _ in shards], [shard for _, shard in shards]
        rows = await self._session.fetch("read_shard_counts", *asked) if shards else []
        by_run: dict[str, dict[int, int]] = defaultdict(dict)
        for row in rows:
            by_run[row["run_id"]][row["shard"]] = row["recorded"]
        return await self._counts(runs, by_run)

    async def all_counts(self, run: RunPlan) -> RunCounts:
        rows = await self._session.fetch("read_all_shard_counts", run.run_id)
        found = await self._counts([run], {run.run_id: {row["shard"]: row["recorded"] for row in rows}})
        if not found:
            raise RecordNotFound(run_id=run.run_id)
        return found[0]

    async def freeze(self, plan: RunPlan, epoch: int, state: FinalState, *, allow_partial: bool) -> None:
        async def once() -> None:
            async with self._session.transaction() as transaction:
                await _lock(transaction, plan.run_id, epoch, is_later_allowed=False)
                # The lock has waited for recorders under way; this statement sees what they committed.
                recorded = await transaction.fetchrow("count_recorded", plan.run_id)
                missing = plan.total - (recorded["recorded"] if recorded else 0)
                if missing and not allow_partial:
                    raise RunIncomplete(run_id=plan.run_id, missing=missing)
                await transaction.execute("freeze_run", plan.run_id, state)

        await self._session.repeat(once)

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        names = [storable(name) for name in environment]
        values = [storable(value) for value in environment.values()]
        # Of a run that is deleted at this moment there is nothing to keep.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch("add_environment", run_id, names, values)

    async def delete(self, run_id: str) -> None:
        async def once() -> None:
            async with self._session.transaction() as transaction:
                await transaction.execute("delete_run_record", run_id)
                await transaction.execute("delete_task_counts", run_id)
                await transaction.execute("delete_shard_counts", run_id)

        await self._session.repeat(once)

    async def _counts(self, runs: Sequence[RunPlan], shards: Mapping[str, dict[int, int]]) -> list[RunCounts]:
        rows_by_run: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in await self._session.fetch("read_task_counts", [run.run_id for run in runs]):
            rows_by_run[row["run_id"]].append(row)
        return [
            _run_counts(run, rows, shards.get(run.run_id, {}))
            for run in runs
            if (rows := rows_by_run.get(run.run_id))
        ]


async def _add(transaction: PostgresTransaction, plan: RunPlan, epoch: int) -> bool:
    added = await transaction.fetchrow(
        "add_run_record",
        plan.run_id,
        epoch,
        plan.rollouts,
        plan.scoring_method,
        plan.is_truncated_left,
        *_fact_columns(plan.facts),
        groups_to_json(plan.groups),
        price_to_json(plan.facts.price),
        storable(plan.facts.dataset_name),
    )
    if added is None:
        return False
    for index, task in enumerate(plan.tasks):
        if await transaction.fetchrow("hold_sample_set", task.sample_set_id) is None:
            raise SampleSetNotFound(sample_set_id=task.sample_set_id)
        await transaction.execute(
            "add_run_task",
            plan.run_id,
            index,
            task.task,
            task.sample_set_id,
            task.first_sample,
            task.sample_count,
            to_json(task.scoring),
            to_json(task.provenance),
            task.request_digest or None,
        )
    return True


async def _open_epoch(transaction: PostgresTransaction, run_id: str, epoch: int) -> None:
    current = await _lock(transaction, run_id, epoch, is_later_allowed=True)
    if epoch > current:
        await transaction.execute("open_epoch", run_id, epoch)
        await transaction.execute("uncount_failures", run_id)
        await transaction.execute("uncount_shards", run_id)


async def _lock(transaction: PostgresTransaction, run_id: str, epoch: int, *, is_later_allowed: bool) -> int:
    """The present epoch of a run, held until the transaction ends."""
    row = await transaction.fetchrow("lock_run_record", run_id)
    if row is None:
        raise RecordNotFound(run_id=run_id)
    current: int = row["epoch"]
    if epoch < current:
        raise EpochOver(run_id=run_id, epoch=epoch, current=current)
    if epoch > current and not is_later_allowed:
        raise EpochNotOpen(run_id=run_id, epoch=epoch, current=current)
    return current


def _fact_columns(facts: RunFacts) -> tuple[object, ...]:
    """In the order of the columns of `add_run_record`."""
    return (
        facts.suite,
        facts.suite_version,
        facts.model,
        facts.project_id,
        facts.user,
        facts.created_at,
        facts.limit,
        facts.num_fewshot,
        facts.missing_tasks,
    )


def _facts(row: asyncpg.Record) -> RunFacts:
    return RunFacts(
        row["suite"],
        row["suite_version"],
        row["model"],
        row["project_id"],
        row["username"],
        row["created_at"],
        row["row_limit"],
        row["num_fewshot"],
        tuple(row["missing_tasks"]),
        price_from_json(row["price"]),
        row["dataset_name"],
    )


def _task(row: asyncpg.Record) -> PlannedTask:
    return PlannedTask(
        row["task"],
        row["set_id"],
        row["first_sample"],
        row["sample_count"],
        scoring_from_json(row["scoring"]),
        provenance_from_json(row["provenance"]),
        row["request_digest"] or b"",
    )


def _run_counts(run: RunPlan, rows: Sequence[asyncpg.Record], shards: dict[int, int]) -> RunCounts:
    """From rows that all name epoch and environment; a run without outcomes has one row, without counts."""
    counted = [row for row in rows if row["task_index"] is not None]
    environment = orjson.loads(rows[0]["environment"] or "{}")
    tasks, failures = _task_counts(run, counted), _failures(counted)
    return RunCounts(run.run_id, rows[0]["epoch"], tasks, failures, shards, environment, _usage(counted))


def _task_counts(run: RunPlan, rows: Sequence[asyncpg.Record]) -> dict[str, TaskCount]:
    recorded, failed, unparsed = ([0] * len(run.tasks) for _ in range(3))
    for row in rows:
        recorded[row["task_index"]] += row["recorded"]
        failed[row["task_index"]] += row["recorded"] if row["failure_class"] else 0
        unparsed[row["task_index"]] += row["unparsed"]
    columns = zip(run.tasks, recorded, failed, unparsed, strict=True)
    return {task.task: TaskCount(*counts) for task, *counts in columns}


def _usage(rows: Sequence[asyncpg.Record]) -> TokenUsage:
    return TokenUsage(
        sum(row["prompt_tokens"] for row in rows),
        sum(row["completion_tokens"] for row in rows),
        sum(row["cached_tokens"] for row in rows),
        sum(row["reasoning_tokens"] for row in rows),
    )


def _failures(rows: Sequence[asyncpg.Record]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        if row["failure_class"] and row["recorded"]:
            counts[FailureClass(row["failure_class"]).word] += row["recorded"]
    return dict(counts)
