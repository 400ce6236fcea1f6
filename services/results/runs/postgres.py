"""The records of runs in Postgres: plans, epochs, counts, environments."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import timedelta

import asyncpg
import orjson
from pydantic import TypeAdapter

from proctor.values.comparison import Decision
from proctor.values.names.project import is_declared
from proctor.values.run import RunCounts, RunState, TaskCounts
from proctor.values.scoring import ScoringMethod, TaskGroup, TaskScoring
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.errors import RowsNotGuarded
from services.common.postgres import PostgresSession, PostgresTransaction, storable
from services.common.sandboxes.task_code.ports import CodeFiles
from services.results.runs.errors import EpochNotOpen, EpochOver, RecordNotFound, RunArchived, RunIncomplete
from services.results.runs.ports import ShardOfRun
from services.results.runs.run_plan import (
    PlannedTask,
    RecordedProgress,
    RunFacts,
    RunPlan,
    RunRecord,
    TaskProvenance,
)
from services.results.samples.errors import SampleSetNotFound

# Each is deleted in a transaction of its own; the rest comes with the next sweep.
SETS_AT_A_TIME = 100
RUNS_AT_A_TIME = 100
# Of all engines of a run, which tell the same. They are read with each summary and comparison.
MAX_KNOWN_FACTS = 1_000
# How columns of JSON are written and read.
SCORING = TypeAdapter(TaskScoring)
PROVENANCE = TypeAdapter(TaskProvenance)
GROUPS = TypeAdapter(tuple[TaskGroup, ...])
PRICE = TypeAdapter(ModelPrice | None)
DECISION = TypeAdapter(Decision)


class PostgresRunRecords:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def open(self, plan: RunPlan, epoch: int) -> RunRecord:
        async def add_or_open(transaction: PostgresTransaction) -> None:
            if is_declared(plan.facts.project_id):
                await _check_guarded(transaction)
            if not await _add(transaction, plan, epoch):
                await _open_epoch(transaction, plan.run_id, epoch)

        await self._session.run(add_or_open)
        return await self.get(plan.run_id)

    async def add_code(self, run_id: str, code: Mapping[str, CodeFiles]) -> None:
        for digest, files in code.items():
            await self._session.execute(
                "add_run_code",
                run_id=run_id,
                digest=digest,
                paths=list(files),
                contents=list(files.values()),
            )

    async def code(self, run_id: str, digest: str) -> CodeFiles:
        row = await self._session.fetchrow("read_run_code", run_id=run_id, digest=digest)
        return dict(zip(row["paths"], row["contents"], strict=True)) if row else {}

    async def get(self, run_id: str) -> RunRecord:
        record = await self.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        return record

    async def find(self, run_id: str) -> RunRecord | None:
        row = await self._session.fetchrow("read_run_record", run_id=run_id)
        if row is None:
            return None
        return _record(run_id, row, await self._session.fetch("list_run_tasks", run_id=run_id))

    async def counts(self, runs: Sequence[RunPlan], shards: Sequence[ShardOfRun]) -> list[RecordedProgress]:
        by_run: dict[str, dict[int, int]] = defaultdict(dict)
        run_ids, numbers = [run_id for run_id, _ in shards], [shard for _, shard in shards]
        rows = (
            await self._session.fetch("list_shard_counts", run_ids=run_ids, shards=numbers) if shards else []
        )
        for row in rows:
            by_run[row["run_id"]][row["shard"]] = row["recorded"]
        return await self._progress(runs, by_run)

    async def all_counts(self, run: RunPlan, *, includes_shards: bool = True) -> RecordedProgress:
        rows = (
            await self._session.fetch("list_all_shard_counts", run_id=run.run_id) if includes_shards else []
        )
        found = await self._progress([run], {run.run_id: {row["shard"]: row["recorded"] for row in rows}})
        if not found:
            raise RecordNotFound(run_id=run.run_id)
        return found[0]

    async def freeze(self, plan: RunPlan, epoch: int, state: RunState | None, *, allow_partial: bool) -> None:
        async def freeze(transaction: PostgresTransaction) -> None:
            await _lock(transaction, plan.run_id, epoch, is_later_allowed=False)
            # The lock has waited for recorders under way; this statement sees what they committed.
            missing = plan.total - await transaction.fetchval("count_recorded", run_id=plan.run_id)
            if missing and not allow_partial:
                raise RunIncomplete(run_id=plan.run_id, missing=missing)
            await transaction.execute("freeze_run", run_id=plan.run_id, state=state)
            await transaction.execute("delete_shard_counts", run_id=plan.run_id)

        await self._session.run(freeze)

    async def decide(self, run_id: str, base_run_id: str, decision: Decision) -> Decision:
        # A run may be deleted at this moment: then nothing is stored, and nobody stops by it.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.execute(
                "add_decision",
                run_id=run_id,
                base_run_id=base_run_id,
                decision=DECISION.dump_json(decision).decode(),
            )
        stored = await self._session.fetchval("read_decision", run_id=run_id)
        return DECISION.validate_json(stored) if stored else decision

    async def add_environment(self, run_id: str, environment: Mapping[str, str]) -> None:
        names = [storable(name) for name in environment]
        values = [storable(value) for value in environment.values()]
        # The run may be deleted at this moment: then there is nothing to keep.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.execute(
                "add_environment", run_id=run_id, names=names, values=values, limit=MAX_KNOWN_FACTS
            )

    async def delete(self, run_id: str) -> None:
        async def delete(transaction: PostgresTransaction) -> None:
            # In the same transaction as the deletion: the sweep follows, also after a crash here.
            await transaction.execute("add_deleted_run", run_id=run_id)
            await transaction.execute("delete_run_record", run_id=run_id)
            await transaction.execute("delete_task_counts", run_id=run_id)
            await transaction.execute("delete_shard_counts", run_id=run_id)

        await self._session.run(delete)

    async def deleted(self) -> Sequence[str]:
        rows = await self._session.fetch("list_deleted_runs", limit=RUNS_AT_A_TIME)
        return [row["run_id"] for row in rows]

    async def delete_deletion(self, run_id: str) -> None:
        await self._session.execute("delete_deleted_run", run_id=run_id)

    async def delete_unused_sets(self, kept_for: timedelta) -> int:
        seconds = kept_for.total_seconds()
        unused = await self._session.fetch("list_unused_sets", unused_seconds=seconds, limit=SETS_AT_A_TIME)
        return sum([await self._delete_unused(row["sample_set_id"], seconds) for row in unused])

    async def _delete_unused(self, sample_set_id: str, unused_seconds: float) -> bool:
        """Locks first: the second statement sees runs that were opened with the set before."""

        async def delete(transaction: PostgresTransaction) -> bool:
            if (
                await transaction.fetchrow(
                    "lock_unused_set", sample_set_id=sample_set_id, unused_seconds=unused_seconds
                )
                is None
            ):
                return False
            return await transaction.fetchrow("delete_sample_set", sample_set_id=sample_set_id) is not None

        return await self._session.run(delete)

    async def _progress(
        self, runs: Sequence[RunPlan], shards: Mapping[str, dict[int, int]]
    ) -> list[RecordedProgress]:
        rows_by_run: dict[str, list[asyncpg.Record]] = defaultdict(list)
        for row in await self._session.fetch("list_task_counts", run_ids=[run.run_id for run in runs]):
            rows_by_run[row["run_id"]].append(row)
        return [
            RecordedProgress(run.run_id, _counts(run, rows), shards.get(run.run_id, {}))
            for run in runs
            if (rows := rows_by_run.get(run.run_id))
        ]


async def _add(transaction: PostgresTransaction, plan: RunPlan, epoch: int) -> bool:
    """False where the run has a record already."""
    facts = plan.facts
    added = await transaction.fetchval(
        "add_run_record",
        run_id=plan.run_id,
        epoch=epoch,
        rollouts=plan.rollouts,
        row_rollouts=plan.row_rollouts,
        scoring_method=plan.scoring_method,
        is_truncated_left=plan.is_truncated_left,
        benchmark=facts.benchmark,
        suite_version=facts.suite_version,
        model=facts.model,
        project_id=facts.project_id,
        username=facts.user,
        created_at=facts.created_at,
        row_limit=facts.limit,
        num_fewshot=facts.num_fewshot,
        missing_tasks=facts.missing_tasks,
        groups=GROUPS.dump_json(plan.groups).decode(),
        price=PRICE.dump_json(facts.price).decode(),
        dataset_name=storable(facts.dataset_name),
        max_failed_share=plan.max_failed_share,
        against_run_id=facts.against_run_id or None,
    )
    if added is None:
        return False
    for index, task in enumerate(plan.tasks):
        if await transaction.fetchrow("lock_readable_set", sample_set_id=task.sample_set_id) is None:
            raise SampleSetNotFound(sample_set_id=task.sample_set_id)
        await transaction.execute(
            "add_run_task",
            run_id=plan.run_id,
            task_index=index,
            task=task.task,
            sample_set_id=task.sample_set_id,
            first_sample=task.first_sample,
            sample_count=task.sample_count,
            scoring=SCORING.dump_json(task.scoring).decode(),
            provenance=PROVENANCE.dump_json(task.provenance).decode(),
            request_digest=task.request_digest or None,
        )
    return True


async def check_guarded(session: PostgresSession) -> None:
    """Raises `RowsNotGuarded` where declared projects have runs and the role of the session sees all rows.

    It cannot record any, but a changed role, another DSN or a restored backup has them.
    """
    role = await session.fetchval("find_unguarded_role")
    if role is not None:
        raise RowsNotGuarded(role=role)


async def _check_guarded(transaction: PostgresTransaction) -> None:
    """Raises `RowsNotGuarded` for a role for which policies do not hold: everybody would see the run."""
    role = await transaction.fetchval("find_bypassing_role")
    if role is not None:
        raise RowsNotGuarded(role=role)


async def _open_epoch(transaction: PostgresTransaction, run_id: str, epoch: int) -> None:
    current = await _lock(transaction, run_id, epoch, is_later_allowed=True)
    if epoch > current:
        await transaction.execute("open_epoch", run_id=run_id, epoch=epoch)
        await transaction.execute("uncount_failures", run_id=run_id)
        await transaction.execute("delete_shard_counts", run_id=run_id)


async def _lock(transaction: PostgresTransaction, run_id: str, epoch: int, *, is_later_allowed: bool) -> int:
    """The present epoch of a run, held until the transaction ends."""
    row = await transaction.fetchrow("lock_run_record", run_id=run_id)
    if row is None:
        raise RecordNotFound(run_id=run_id)
    current: int = row["epoch"]
    if epoch < current:
        raise EpochOver(run_id=run_id, epoch=epoch, current=current)
    if epoch > current and not is_later_allowed:
        raise EpochNotOpen(run_id=run_id, epoch=epoch, current=current)
    if epoch > current and row["is_archived"]:
        raise RunArchived(run_id=run_id)
    return current


def _record(run_id: str, row: asyncpg.Record, tasks: Sequence[asyncpg.Record]) -> RunRecord:
    plan = RunPlan(
        run_id=run_id,
        tasks=tuple(_task(task) for task in tasks),
        rollouts=row["rollouts"],
        row_rollouts=tuple(row["row_rollouts"]),
        scoring_method=ScoringMethod(row["scoring_method"]) if row["scoring_method"] else None,
        is_truncated_left=row["is_truncated_left"],
        facts=_facts(row),
        groups=GROUPS.validate_json(row["groups"]),
        max_failed_share=row["max_failed_share"],
    )
    state = RunState(row["state"]) if row["state"] else None
    decision = DECISION.validate_json(row["decision"]) if row["decision"] else None
    return RunRecord(plan, row["epoch"], row["is_frozen"], state, row["frozen_at"], decision)


def _facts(row: asyncpg.Record) -> RunFacts:
    return RunFacts(
        benchmark=row["benchmark"],
        suite_version=row["suite_version"],
        model=row["model"],
        project_id=row["project_id"],
        user=row["username"],
        created_at=row["created_at"],
        limit=row["row_limit"],
        num_fewshot=row["num_fewshot"],
        missing_tasks=tuple(row["missing_tasks"]),
        price=PRICE.validate_json(row["price"]),
        dataset_name=row["dataset_name"],
        against_run_id=row["against_run_id"] or "",
    )


def _task(row: asyncpg.Record) -> PlannedTask:
    return PlannedTask(
        task=row["task"],
        sample_set_id=row["sample_set_id"],
        first_sample=row["first_sample"],
        sample_count=row["sample_count"],
        scoring=SCORING.validate_json(row["scoring"]),
        provenance=PROVENANCE.validate_json(row["provenance"]),
        request_digest=row["request_digest"] or b"",
    )


def _counts(run: RunPlan, rows: Sequence[asyncpg.Record]) -> RunCounts:
    """Counts from rows that all name epoch and environment.

    A run without outcomes has one row, without counts.
    """
    counted = [row for row in rows if row["task_index"] is not None]
    recorded, failed, unparsed = ([0] * len(run.tasks) for _ in range(3))
    failures: dict[str, int] = defaultdict(int)
    for row in counted:
        recorded[row["task_index"]] += row["recorded"]
        unparsed[row["task_index"]] += row["unparsed"]
        if row["failure_class"] and row["recorded"]:
            failed[row["task_index"]] += row["recorded"]
            failures[row["failure_class"]] += row["recorded"]
    columns = zip(run.tasks, recorded, failed, unparsed, strict=True)
    return RunCounts(
        epoch=rows[0]["epoch"],
        tasks=tuple(TaskCounts(task.task, *numbers) for task, *numbers in columns),
        failures=dict(failures),
        environment=orjson.loads(rows[0]["environment"] or "{}"),
        usage=TokenUsage(*[sum(row[each.name] for row in counted) for each in fields(TokenUsage)]),
    )
