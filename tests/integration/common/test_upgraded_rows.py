"""Rows that earlier code stored are read after a migration gave their columns and keys other names."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.rollout import BudgetUse, EarlierUse
from proctor.values.run import RunId, RunKind
from proctor.values.sample import Prompt
from proctor.values.usage import TokenUsage
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results import postgres as results
from services.results.answers.marks import Mark
from services.results.answers.postgres import PostgresMarks, PostgresSameSamples
from services.results.export.exported_run import ResumableFile, ResumePoint, RowKind, RowQuery
from services.results.export.postgres import PostgresExportRows, PostgresResumePoints
from services.results.leaderboard.list_history import NEWEST
from services.results.leaderboard.ports import HistoryRange, Lease, Work
from services.results.leaderboard.postgres import PostgresLeaderboard, PostgresLeases
from services.results.runs.postgres import PostgresRunRecords
from services.results.samples.postgres import PostgresSampleMessages, PostgresSampleSets
from services.results.summaries.ports import CloseLease
from services.results.summaries.postgres import PostgresCloseLeases
from services.scheduler import postgres as scheduler
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.rollouts.budgets.budget_report import BudgetReport
from services.scheduler.rollouts.budgets.postgres import PostgresBudgets
from services.scheduler.runs.lifecycle.errors import RunOfBatch
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.reads.postgres import PostgresRunLists
from services.scheduler.runs.reads.run_list import RunFilter
from services.scheduler.scaling.postgres import PostgresDemands
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.task_sets.postgres import PostgresTaskSets
from tests.fakes.callers import by
from tests.fakes.scheduler_rules import queue_limits
from tests.harness.servers import postgres_server

SET, ALIAS, GONE, RUN, OVER_ROWS = (f"00000000-0000-0000-0000-00000000000{number}" for number in range(1, 6))
AT, SECOND = datetime(2026, 11, 20, tzinfo=UTC), timedelta(seconds=1)
# Rows of code that has the migrations before results/0014_one_word_each.sql.
RESULTS_ROWS = f"""
    INSERT INTO sample_sets (set_id, digest) VALUES ('{SET}', sha256('a'));
    INSERT INTO sample_sets (set_id, same_as) VALUES ('{ALIAS}', '{SET}');
    INSERT INTO samples
        (
            set_id, position, doc_id, digest, prompt_text, choices, target_choice, target_texts, cluster,
            rollout
        )
    SELECT of_set::uuid, at, at, sha256(at::text::bytea), 'How?', '{{" a"," b"}}', 0, '{{}}', '', 'spec'
    FROM generate_series(0, 2) AS at, unnest(ARRAY['{SET}', '{GONE}']) AS of_set;
    INSERT INTO dropped_sample_sets (set_id) VALUES ('{GONE}');
    INSERT INTO run_records (
        run_id, epoch, is_frozen, rollouts, scoring_method, is_truncated_left, suite, model, row_limit, state,
        closed_at
    )
    VALUES ('{RUN}', 1, true, 1, 'loglikelihood', false, 'glue', 'p/m', 3, 'completed', '{AT}');
    INSERT INTO run_records (
        run_id, epoch, rollouts, is_truncated_left, suite, dataset_name, model, state, compared_epoch
    )
    VALUES ('{OVER_ROWS}', 1, 1, false, 'ds_1', 'rows.jsonl', 'p/m', 'completed', 1);
    INSERT INTO run_tasks (run_id, task_index, task, set_id, first_sample, sample_count, scoring, provenance)
    SELECT
        '{RUN}', 0, 'sst2', '{SET}', 0, 3,
        '{{"output_type": "multiple_choice", "metrics": [], "target_delimiter": " "}}',
        '{{"dataset": "rows", "dataset_revision": "1"}}';
    INSERT INTO run_summaries (run_id, epoch, summary)
    VALUES ('{RUN}', 1, '{{"tasks":[{{"task":"sst2","dataset":"rows","dataset_revision":"1"}}]}}');
    INSERT INTO outcomes (
        run_id, sample, rollout, task_index, shard, epoch, attempt, status, failure_message, answer_text,
        finish_reason, choices, prediction, scores, prompt_tokens, completion_tokens, cached_tokens,
        reasoning_tokens, total_seconds
    )
    SELECT '{RUN}', at, 0, 0, 0, 1, 1, 'scored', '', '', '', '[]', ' a', '{{"acc": 1}}', 1, 1, 0, 0, 0.5
    FROM generate_series(0, 2) AS at;
    INSERT INTO close_claims (run_id, epoch, holder, tries, claimed_until)
    VALUES ('{RUN}', 1, '{SET}', 2, '{AT}');
    INSERT INTO closed_run_claims (run_id, work, epoch, tries, claimed_until)
    VALUES ('{RUN}', 'comparison', 1, 2, '{AT}');
    INSERT INTO closed_runs (run_id, epoch, suite, model, project_id, state, closed_at, result)
    SELECT
        run_id, 1, suite, 'p/m', 7, 'completed', '{AT}',
        '{{"conditions": {{"scoring_method": "generate"}}}}'
    FROM (VALUES ('{RUN}'::uuid, 'glue'), ('{OVER_ROWS}', 'ds_1')) AS closed (run_id, suite);
    INSERT INTO history_entries (suite, model, closed_at, run_id)
    SELECT suite, 'p/m', '{AT}', run_id
    FROM (
        VALUES
            ('glue', '{RUN}'::uuid), ('*suite', '{RUN}'), ('', '{RUN}'),
            ('ds_1', '{OVER_ROWS}'), ('*dataset', '{OVER_ROWS}'), ('', '{OVER_ROWS}')
    ) AS lists (suite, run_id);
    INSERT INTO leaderboard_entries (suite, project, metric, model, conditions, closed_at, run_id, mean)
    SELECT 'glue', project, metric, 'p/m', '', '{AT}', '{RUN}', 1
    FROM (VALUES ('7', 'acc'), ('', 'f1')) AS entries (project, metric);
    INSERT INTO mark_changes (run_id, sample, rollout, is_golden, is_wrong, username)
    VALUES ('{RUN}', 1, 0, false, true, 'ann');
    INSERT INTO export_marks (run_id, epoch, form, first_byte, sample, rollout, is_end)
    VALUES ('{RUN}', 1, 'csv', 100, 2, 0, true);
"""
DIGEST = "d" * 64
# Rows of code that has the migrations before scheduler/0020_one_word_each.sql.
SCHEDULER_ROWS = f"""
    INSERT INTO runs (
        run_id, username, project_id, suite, dataset_id, model, pool, priority, ordered, scoring_method,
        state, epoch, created_at, queued_at, environment, made_for_batch, step
    )
    SELECT
        run_id, 'ann', 7, coalesce(own ->> 'dataset_id', 'toy'), own ->> 'dataset_id', 'openai/m', 'remote',
        2,
        '{{"suite": "toy", "model": "openai/m", "project_id": 7, "rollouts": 2}}'::jsonb || own,
        'generate', 'running', 1, '{AT}', '{AT}',
        '{{"engine": "vllm", "task.say.dataset": "rows", "task.say.dataset_revision": "1"}}',
        batch_id, 'planning say'
    FROM (
        VALUES
            ('{RUN}'::uuid, '{{"rollouts_group": "ann/1", "max_parallel": 3}}'::jsonb, NULL),
            ('{SET}', '{{"rollouts_group": "", "max_parallel": null}}', 'batch_1'),
            -- Stored before there were orders of rollouts.
            ('{ALIAS}', '{{"suite": "", "dataset_id": "ds_1"}}', NULL)
    ) AS stored (run_id, own, batch_id);
    INSERT INTO tasks (
        run_id, task_index, task, version, sample_set_id, first_sample, sample_count, output_type,
        num_fewshot, is_stand_in, dataset, dataset_revision
    )
    VALUES ('{RUN}', 0, 'say', '1', '{SET}', 0, 3, 'generate_until', 0, false, 'rows', '1');
    INSERT INTO task_sets (digest, prefix, size_bytes) VALUES ('{DIGEST}', 'tasks/1', 10);
    INSERT INTO task_bundles (set_digest, digest) VALUES ('{DIGEST}', 'bundle');
    INSERT INTO task_set_uses (set_digest, username, document, since)
    VALUES ('{DIGEST}', 'ann', '', '{AT}'), ('{DIGEST}', 'ann', 'gone', '{AT}');
    INSERT INTO pool_demands (pool, workers, samples, speeds, computed_at)
    VALUES ('remote', 2, '{{"openai/m": 100}}', '{{}}', '{AT}');
    INSERT INTO rollout_budgets (run_id, epoch, sample, rollout, execution, began_at, steps, usage, seconds)
    VALUES ('{RUN}', 1, 4, 0, 'first', '{AT}', 5, '{{"prompt_tokens": 9}}', 1.5);
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[str]:
    async with postgres_server() as running:
        yield running.address


@asynccontextmanager
async def upgraded(
    dsn: str, service: ModuleType, newest: str, rows: str, folder: Path
) -> AsyncIterator[PostgresSession]:
    """Migrates to what was before `newest`, stores rows, and migrates to the present."""
    folder.mkdir()
    for file in service.MIGRATIONS.glob("*.sql"):
        if file.name < newest:
            shutil.copy(file, folder)
    await migrate(dsn, service.SCHEMA, folder)
    connection = await asyncpg.connect(dsn, server_settings={"search_path": service.SCHEMA})
    await connection.execute(rows)
    await connection.close()
    await migrate(dsn, service.SCHEMA, service.MIGRATIONS)
    async with await connect_pool(dsn, schema=service.SCHEMA, max_size=2) as pool:
        yield PostgresSession(pool, service.QUERIES)


async def leaderboards_are_read(leaderboard: PostgresLeaderboard) -> None:
    assert await leaderboard.metrics("glue", 7) == ["acc"]
    assert await leaderboard.metrics("glue", None) == ["f1"]
    assert await leaderboard.latest_runs("ds_1", ["p/m"]) == {"p/m": OVER_ROWS}
    for name, kind, expected in (
        ("glue", None, ["glue"]),
        ("ds_1", None, ["ds_1"]),
        ("", RunKind.SUITE, ["glue"]),
        ("", RunKind.DATASET, ["ds_1"]),
        ("", None, ["ds_1", "glue"]),
    ):
        page = HistoryRange(name, "p/m", AT - SECOND, NEWEST, 10, kind)
        assert [run.benchmark for run in await leaderboard.page(page)] == expected


async def test_samples_outcomes_and_leaderboards_are_read_by_their_new_names(
    server: str, tmp_path: Path
) -> None:
    async with upgraded(
        server, results, "0014_one_word_each.sql", RESULTS_ROWS, tmp_path / "results"
    ) as session:
        sets, records = PostgresSampleSets(session), PostgresRunRecords(session)
        assert [one.prompt for one in (await sets.read(SET, [0, 2])).values()] == [Prompt("How?")] * 2
        sent = await PostgresSampleMessages(session).read(SET, [1])
        assert sent[1].rollout_spec == b"spec"
        assert await sets.commit(ALIAS, 3) == await sets.commit(SET, 3)
        assert await PostgresSameSamples(session).has_any(SET, SET)
        assert len(await sets.targets(GONE, [0, 1])) == 2
        await sets.delete_staged(AT)
        assert await sets.targets(GONE, [0, 1]) == {}

        record = await records.get(RUN)
        assert (record.is_frozen, record.frozen_at) == (True, AT)
        assert (record.plan.facts.benchmark, record.plan.facts.limit) == ("glue", 3)
        over_rows = (await records.get(OVER_ROWS)).plan.facts
        assert (over_rows.benchmark, over_rows.dataset_name) == ("ds_1", "rows.jsonl")
        [task] = record.plan.tasks
        assert (task.task, task.sample_set_id) == ("sst2", SET)
        assert (task.provenance.row_source, task.provenance.row_source_revision) == ("rows", "1")
        stored = await session.fetchrow("read_summary", RUN, 1)
        assert stored is not None
        renamed = '{"tasks":[{"task":"sst2","row_source":"rows","row_source_revision":"1"}]}'
        assert stored["summary"] == renamed
        chunks = PostgresExportRows(session).chunks(RowQuery(RowKind.COLUMNS, record, 0), (-1, -1))
        exported = [row async for chunk in chunks for row in chunk.rows]
        shown = [(row["prompt"], row["target"], row["prediction"]) for row in exported]
        assert shown == [("How?", "a", " a")] * 3

        [change] = await PostgresMarks(session).changes(RUN, 1, None)
        assert (change.key, change.mark) == ((1, 0), Mark.WRONG)
        assert await PostgresCloseLeases(session, SET).acquire(RUN, 1, 60) == CloseLease(starts=3)
        assert await PostgresLeases(session).acquire(Work.COMPARISON, 60) == Lease(RUN, Work.COMPARISON, 3)
        end = await PostgresResumePoints(session).end(ResumableFile(RUN, 1, "csv"))
        assert end == ResumePoint(100, (2, 0), is_end=True)
        await leaderboards_are_read(PostgresLeaderboard(session))


async def test_runs_tasks_and_demands_are_read_by_their_new_names(server: str, tmp_path: Path) -> None:
    async with upgraded(
        server, scheduler, "0020_one_word_each.sql", SCHEDULER_ROWS, tmp_path / "scheduler"
    ) as session:
        limits = PostgresLimits(session, queue_limits())
        runs = PostgresRuns(session, limits)
        stored = [await runs.get(RunId(run_id)) for run_id in (RUN, SET, ALIAS)]
        assert {run.phase for run in stored} == {"planning say"}
        orders = [run.order for run in stored]
        assert [order.benchmark for order in orders] == ["toy", "toy", "ds_1"]
        lists = PostgresRunLists(session)
        listed = [await lists.page(RunFilter(benchmark=name), 10, None) for name in ("toy", "ds_1")]
        assert [[run.run_id for run in page.runs] for page in listed] == [[RUN, SET], [ALIAS]]
        assert (await lists.page(RunFilter(dataset_id="ds_1"), 10, None)).total == 1
        bounds = [(order.parallel_group, order.parallel) for order in orders]
        assert bounds == [("ann/1", 3), ("", None), ("", None)]
        assert [(order.rollouts, order.project_id) for order in orders] == [(2, 7)] * 3
        [task] = await runs.planned_tasks(RunId(RUN))
        assert (task.task, task.row_source, task.row_source_revision) == ("say", "rows", "1")
        renamed = {"engine": "vllm", "task.say.row_source": "rows", "task.say.row_source_revision": "1"}
        assert [run.environment for run in stored] == [renamed] * 3
        with pytest.raises(RunOfBatch, match="batch_1"):
            await runs.requeue(RunId(SET), by())

        sets = PostgresTaskSets(session, PostgresStorage(session, limits), SystemClock())
        await sets.delete_unused(AT, AT + SECOND)
        assert await sets.prefix_of_bundle("bundle") == "tasks/1"
        await sets.delete_unused(AT + SECOND, AT + SECOND)
        assert await sets.prefix_of_bundle("bundle") is None

        demands = (await PostgresDemands(session).demands()).by_pool
        assert demands["remote"].backlog_samples == {"openai/m": 100}
        report = BudgetReport(RunId(RUN), 1, 4, 0, "second", BudgetUse())
        earlier = await PostgresBudgets(session, SystemClock()).record(report)
        assert earlier == EarlierUse(BudgetUse(5, TokenUsage(prompt_tokens=9), 1.5), executions=1)
