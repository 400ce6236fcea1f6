"""Invariants of a run after a fault, counted in the rows and not taken from any counter."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from proctor.v1 import run_pb2, summary_pb2
from tests.chaos.faults.faulted_run import END_LIMIT_SECONDS, FaultedRun

_SCORED = "scored"

_ROWS = """
SELECT sample, rollout, shard, status, (scores ->> 'exact_match')::float AS exact_match
FROM results.outcomes WHERE run_id = $1
"""
_TASK_COUNTS = """
SELECT coalesce(sum(recorded), 0)::int AS recorded, coalesce(sum(unparsed), 0)::int AS unparsed,
    coalesce(sum(recorded) FILTER (WHERE failure_class IS NOT NULL), 0)::int AS failed
FROM results.task_counts WHERE run_id = $1
"""
_SHARD_COUNTS = "SELECT shard, recorded FROM results.shard_counts WHERE run_id = $1 AND recorded > 0"


@dataclass(frozen=True)
class Rows:
    """The rows of a run, and what the counters say of them."""

    outcomes: Sequence[asyncpg.Record]
    task_counts: dict[str, int]
    shard_counts: dict[int, int]


async def assert_right(run: FaultedRun) -> None:
    """The run ended as completed, and whatever struck it left no trace in what was recorded."""
    await assert_recorded_right(run, END_LIMIT_SECONDS)
    await assert_asked_no_more_than_needed(run)


async def assert_recorded_right(run: FaultedRun, limit_seconds: float) -> None:
    """The run ends as completed within the limit, with each answer once, and each of them right."""
    ended = await run.ended(limit_seconds)
    assert ended.state == run_pb2.RUN_STATE_COMPLETED, ended.error
    rows = await read_rows(run)
    assert_each_recorded_once(rows, run.total)
    assert_counters_equal_rows(rows)
    assert_all_answered_right(rows)
    assert_summary(await run.stack.client.summary(run.run_id), run.total)


async def read_rows(run: FaultedRun) -> Rows:
    async with run.stack.database() as database:
        task_counts = await database.fetchrow(_TASK_COUNTS, run.run_id)
        assert task_counts is not None
        shards = await database.fetch(_SHARD_COUNTS, run.run_id)
        return Rows(
            outcomes=await database.fetch(_ROWS, run.run_id),
            task_counts=dict(task_counts),
            shard_counts={row["shard"]: row["recorded"] for row in shards},
        )


def assert_each_recorded_once(rows: Rows, samples: int, rollouts: int = 1) -> None:
    counted = Counter((row["sample"], row["rollout"]) for row in rows.outcomes)
    wanted = {(sample, rollout) for sample in range(samples) for rollout in range(rollouts)}
    assert wanted - counted.keys() == set(), "missing"
    assert counted.keys() - wanted == set(), "never asked for"
    assert [key for key, times in counted.items() if times > 1] == [], "doubled"


def assert_counters_equal_rows(rows: Rows) -> None:
    statuses = Counter(row["status"] for row in rows.outcomes)
    assert rows.task_counts == {
        "recorded": len(rows.outcomes),
        "unparsed": statuses[2],
        "failed": statuses[3],
    }
    assert not rows.shard_counts, "those of shards go when the run is closed"


def assert_all_answered_right(rows: Rows) -> None:
    """The server never answers wrong: any other score is a failure of the machinery taken for an answer."""
    assert Counter((row["status"], row["exact_match"]) for row in rows.outcomes) == {
        (_SCORED, 1.0): len(rows.outcomes)
    }


def assert_summary(summary: summary_pb2.RunSummary, samples: int) -> None:
    assert not summary.is_partial
    assert (summary.answered, summary.failed, summary.unparsed) == (samples, 0, 0)
    [task] = summary.tasks
    assert (task.metrics[0].n, task.metrics[0].mean) == (samples, 1.0)


async def assert_asked_no_more_than_needed(run: FaultedRun) -> None:
    """Beyond the samples, only what was in flight at a fault and what the server itself failed to answer."""
    stats = await run.stack.model_server.stats()
    assert stats["distinct_prompts"] == run.total
    again = stats["requests"] - run.total - stats["faulted"]
    assert again <= run.samples_in_flight, f"{again} asked again, {run.samples_in_flight} were in flight"
