"""`kill -9` while runs are closed, ranked and compared: each has one place, one history, one comparison."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.chaos.faults.stack_faults import kill
from tests.e2e.harness.entry_points import API, http
from tests.e2e.harness.run_ends import ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import StackHarness, StackOrder, stack_harness
from tests.harness.starter_model import SUITE as STARTER

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("fake", "other", "third")

_KEPT = """
SELECT
    (SELECT count(*) FROM results.closed_runs) AS closed,
    (SELECT count(DISTINCT run_id) FROM results.history_entries) AS in_history,
    (SELECT count(*) FROM results.run_summaries) AS summaries,
    (SELECT count(*) FROM results.run_records WHERE NOT is_frozen) AS still_open,
    (SELECT count(DISTINCT (least(first_run_id, second_run_id), greatest(first_run_id, second_run_id)))
     FROM results.run_comparisons) AS compared_pairs,
    (SELECT count(DISTINCT (first_run_id, second_run_id)) FROM results.run_comparisons) AS stored_pairs
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(suites=(STARTER,), models=MODELS)) as stack:
            yield stack


@pytest.mark.thorough
async def test_runs_that_close_under_kills_are_ranked_and_compared_once(stack: StackHarness) -> None:
    run_ids = [await stack.submit(order(model)) for model in MODELS]
    async with asyncio.TaskGroup() as group:
        ends = [group.create_task(ended(stack, run_id)) for run_id in run_ids]
        for name in ("results", "postgres", "results", "scheduler", "results"):
            await kill(stack, name)
    assert {end.result().state for end in ends} == {run_pb2.RUN_STATE_COMPLETED}

    async def all_compared() -> bool:
        async with stack.database() as database:
            return bool(
                await database.fetchval(
                    "SELECT count(DISTINCT (first_run_id, second_run_id)) = 3 FROM results.run_comparisons"
                )
            )

    await eventually(all_compared, "every pair is compared", 40)
    async with stack.database() as database:
        kept = await database.fetchrow(_KEPT)
    assert kept is not None
    assert dict(kept) == {
        "closed": 3,
        "in_history": 3,
        "summaries": 3,
        "still_open": 0,
        "compared_pairs": 3,
        "stored_pairs": 3,
    }
    leaderboard = (await http(stack, "GET", f"{API}/leaderboard?suite=starter&metric=accuracy")).body
    assert sorted(entry["model"] for entry in leaderboard["leaderboard"]) == list(MODELS)


def order(model: str) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(project_id=1, suite="starter", model=f"openai/{model}")
