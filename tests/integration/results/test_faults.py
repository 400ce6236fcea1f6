"""Results over the death of what it stands on and of itself: nothing is lost, nothing is doubled."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import pytest_asyncio

from proctor.v1 import run_record_service_pb2 as run_record_pb2
from services.common.nats.streams import OUTCOMES
from services.common.postgres import retrying
from services.results.outcomes.outcome import MAX_FACT_CHARACTERS, OutcomeBatch
from services.results.runs import postgres
from services.results.runs.run_plan import RunPlan
from tests.fakes.callers import CALLER_KEY
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, batch
from tests.fakes.results.results_harness import ResultsHarness, harness_settings, results_harness
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound, output_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLES = 1200
BEFORE = SAMPLES // 2
STEP = 10
LIMIT_SECONDS = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def send(harness: ResultsHarness, plan: RunPlan, samples: range) -> None:
    for first in range(samples.start, samples.stop, STEP):
        outcomes = [answered(sample, sample % 2) for sample in range(first, first + STEP)]
        await harness.send(batch(plan.run_id, outcomes))


async def send_until_midway(harness: ResultsHarness, plan: RunPlan) -> None:
    """Half of the samples are sent, and a part of them is recorded."""
    await send(harness, plan, range(BEFORE))
    await eventually(lambda: has_rows(harness, plan, SAMPLES // 10), "a tenth is recorded")


async def has_rows(harness: ResultsHarness, plan: RunPlan, count: int) -> bool:
    async def rows() -> int:
        async with harness.database() as database:
            query = "SELECT count(*) FROM outcomes WHERE run_id = $1::uuid"
            return int(await database.fetchval(query, plan.run_id))

    return await retrying(rows) >= count


def strike(pid: int | None) -> None:
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


async def assert_complete(harness: ResultsHarness, plan: RunPlan) -> None:
    await eventually(lambda: has_rows(harness, plan, SAMPLES), "every sample is recorded", LIMIT_SECONDS)
    assert await harness.recorded(plan.run_id) == SAMPLES
    request = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1)
    summary = (await harness.records.CloseRun(request)).summary
    assert (summary.answered, summary.failed, summary.tasks[0].metrics[0].mean) == (SAMPLES, 0, 1.0)


@first_cases(1, "server", ["postgres", "nats"])
async def test_nothing_is_lost_when_a_server_is_killed(harness: ResultsHarness, server: str) -> None:
    plan = await harness.open_run_of(SAMPLES)
    await send_until_midway(harness, plan)
    strike((harness.postgres if server == "postgres" else harness.nats).child.pid)
    await send(harness, plan, range(BEFORE, SAMPLES))
    await assert_complete(harness, plan)


async def test_recording_goes_on_after_the_stream_was_deleted(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(SAMPLES)
    await send_until_midway(harness, plan)
    await harness.connection.jetstream().delete_stream(OUTCOMES.name)
    # What the stream held is sent again by those who find it missing.
    await send(harness, plan, range(SAMPLES))
    await assert_complete(harness, plan)


@asynccontextmanager
async def replica(harness: ResultsHarness) -> AsyncIterator[asyncio.subprocess.Process]:
    """A second process of the service, on the same Postgres and NATS."""
    settings = harness_settings(harness.postgres, harness.nats)
    environment = {
        **os.environ,
        "PROCTOR_POSTGRES_DSN": settings.postgres_dsn,
        "PROCTOR_NATS_URL": settings.nats_url,
        "PROCTOR_RESULTS_ADDRESS": "127.0.0.1:0",
        "PROCTOR_DISPATCH_PROOF_KEY": DISPATCH_PROOF_KEY,
        "PROCTOR_CALLER_KEY": CALLER_KEY,
        "PROCTOR_RESULTS_ACK_WAIT_SECONDS": "2",
    }
    process = await asyncio.create_subprocess_exec(
        *bound(sys.executable, "-m", "services.results"), env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        while b'"ready"' not in await asyncio.wait_for(process.stdout.readline(), 30):
            assert process.returncode is None
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await output_of(process, 20)


async def test_what_a_killed_replica_held_is_recorded_by_another(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(SAMPLES)
    async with replica(harness) as process:
        await send_until_midway(harness, plan)
        strike(process.pid)
        await send(harness, plan, range(BEFORE, SAMPLES))
        await assert_complete(harness, plan)


async def test_a_replica_that_is_stopped_finishes_what_it_holds(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(SAMPLES)
    async with replica(harness) as process:
        await send_until_midway(harness, plan)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
        await send(harness, plan, range(BEFORE, SAMPLES))
        await assert_complete(harness, plan)


async def test_answers_are_recorded_whatever_a_worker_says_of_its_engine(
    harness: ResultsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One message that comes again and again would take the place of those of all pools."""
    monkeypatch.setattr(postgres, "MAX_KNOWN_FACTS", 2)
    plan = await harness.open_run_of(3)
    # Postgres cannot make it shorter, and indexes no such row.
    long = "".join(chr(0x4E00 + number) for number in range(9_000))
    for sample, said in enumerate(({"engine": long}, {"a": "1"}, {"b": "2"})):
        await harness.send(OutcomeBatch(plan.run_id, 1, [answered(sample)], said))
        await eventually(partial(has_rows, harness, plan, sample + 1), "it is recorded")
    environment = (await harness.counts(plan.run_id)).environment
    assert dict(environment) == {"engine": long[:MAX_FACT_CHARACTERS], "a": "1"}
