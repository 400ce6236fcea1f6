"""Many slow reads are refused beyond a limit, and outcomes are recorded meanwhile."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import results_service_pb2 as results_pb2
from services.common.grpc.errors import remote_error
from services.results.runs.run_plan import RunPlan
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, batch
from tests.fakes.results.results_harness import ResultsHarness, results_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONNECTIONS = 3
CALLS = 20
LIMITS = {"read_connections": CONNECTIONS, "read_wait_seconds": 0.5, "read_timeout_seconds": 3.0}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness(**LIMITS) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(harness: ResultsHarness) -> RunPlan:
    made = await harness.open_run_of(10)
    await record(harness, made, range(5))
    return made


async def record(harness: ResultsHarness, plan: RunPlan, samples: range) -> None:
    await harness.send(batch(plan.run_id, [answered(sample) for sample in samples]))

    async def are_recorded() -> bool:
        return await harness.recorded(plan.run_id) == samples.stop

    await eventually(are_recorded, "they are recorded")


async def refusals(calls: Sequence[Awaitable[object]]) -> list[grpc.aio.AioRpcError]:
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    return [one for one in outcomes if isinstance(one, grpc.aio.AioRpcError)]


async def test_slow_reads_are_refused_beyond_a_limit_while_outcomes_are_recorded(
    harness: ResultsHarness, plan: RunPlan
) -> None:
    started = time.monotonic()
    async with harness.database() as blocker, blocker.transaction():
        await blocker.execute("LOCK TABLE marks IN ACCESS EXCLUSIVE MODE")
        request = results_pb2.ListOutcomesRequest(run_id=plan.run_id)
        reads = [asyncio.ensure_future(harness.public.ListOutcomes(request)) for _ in range(CALLS)]
        await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
        # No read has come to its end, and none of them is in the way.
        await record(harness, plan, range(5, 10))
        refused = await refusals(reads)
    assert len(refused) == CALLS
    found = [remote_error(one) for one in refused]
    assert {one.kind for one in found} == {"unavailable"}
    assert {one.facts["retry_after_seconds"] for one in found} == {"2"}
    assert sum("at once" in one.message for one in found) == CALLS - CONNECTIONS
    assert sum("exceeded 3 s" in one.message for one in found) == CONNECTIONS
    # None was tried again by itself: that would multiply what is too much already.
    assert time.monotonic() - started < 3 * LIMITS["read_timeout_seconds"]
    assert len((await harness.public.ListOutcomes(request)).outcomes) == 10
