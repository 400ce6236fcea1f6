"""`kill -9` of each process while a batch is planned, runs, or is written: each line once over its files.

Moments are drawn from a seed that is in the test's name, so that a failure can be repeated.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from tests.chaos.faults.faulted_batch import (
    FaultedBatch,
    assert_batch_right,
    assert_own_answers,
    batch_stack,
    retrying_client,
)
from tests.chaos.faults.run_audit import assert_counters_equal_rows, read_rows
from tests.chaos.faults.stack_faults import kill
from tests.fakes.thorough_cases import first_cases
from tests.harness.batch_counts import count_batch
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVICES = ("worker", "scheduler", "results", "gateway")
SERVERS = ("nats", "postgres")
# Where a batch without faults is done within seconds, a kill comes within this time of a state.
MAX_DELAY_SECONDS = 0.3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    async with batch_stack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(stack: StackHarness) -> AsyncIterator[AsyncOpenAI]:
    async with retrying_client(stack) as opened:
        yield opened


# Two in one batch, one after the other.
@first_cases(1, ("names", "seed"), [(SERVERS, 3), (SERVICES[:2], 1), (SERVICES[2:], 2)], ids=str)
async def test_batch_outlives_kills_while_it_runs(
    stack: StackHarness, client: AsyncOpenAI, names: Sequence[str], seed: int
) -> None:
    draw = random.Random(seed)
    faulted = await FaultedBatch.start(stack, client)
    for name, share in zip(names, (draw.uniform(0.1, 0.3), draw.uniform(0.4, 0.6)), strict=True):
        await faulted.run.strike_at(share, partial(kill, stack, name))
    await assert_batch_right(faulted)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("names", "seed"),
    [
        (("scheduler", "results"), 4),
        pytest.param(("results", "scheduler"), 5, marks=pytest.mark.thorough),
    ],
    ids=str,
)
async def test_batch_outlives_kills_while_it_is_planned_and_while_its_files_are_written(
    stack: StackHarness, client: AsyncOpenAI, names: Sequence[str], seed: int
) -> None:
    draw = random.Random(seed)
    faulted = await FaultedBatch.start(stack, client)
    for name, state in zip(names, ("validating", "finalizing"), strict=True):
        await faulted.reaches(state)
        await asyncio.sleep(draw.uniform(0, MAX_DELAY_SECONDS))
        await kill(stack, name)
    await assert_batch_right(faulted)


@first_cases(1, "state", ["expired", "cancelled"])
async def test_batch_that_is_stopped_before_its_leader_is_killed_has_each_line_once(
    stack: StackHarness, client: AsyncOpenAI, state: str
) -> None:
    faulted = await FaultedBatch.start(stack, client)

    async def stop_and_kill() -> None:
        await (faulted.expire() if state == "expired" else client.batches.cancel(faulted.batch_id))
        await kill(stack, "scheduler")

    recorded = await faulted.run.strike_at(0.2, stop_and_kill)
    ended = await faulted.ended()
    output, errors = await faulted.files(ended)
    counted = count_batch(faulted.content, output, errors)
    assert (ended.status, counted.problems) == (state, ()), f"{ended}\n{counted}"
    assert recorded <= counted.answered < counted.lines
    assert counted.codes == {f"batch_{state}": counted.lines - counted.answered}
    assert_own_answers(output)
    assert ended.request_counts
    assert (ended.request_counts.completed, ended.request_counts.failed) == (
        counted.answered,
        counted.lines - counted.answered,
    )
    rows = await read_rows(faulted.run)
    assert len(rows.outcomes) == counted.answered
    assert_counters_equal_rows(rows)
