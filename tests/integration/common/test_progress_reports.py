"""Reports of progress over a real NATS."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from nats.aio.client import Client

from proctor.values.messaging import progress_subject
from proctor.values.run import RunCounts, TaskCounts
from proctor.wire.progress_proofs import PROGRESS_PROOF, progress_proof
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.results.outcomes.nats import NatsProgressPublisher
from services.results.runs.proto import progress_to_proto
from services.results.runs.run_plan import RecordedProgress
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ProgressTracker
from tests.fakes.eventually import eventually
from tests.fakes.shard_key import SHARD_KEY
from tests.harness.servers import nats_server


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[Client]:
    async with nats_server() as server:
        connected = await connect_nats(server.address, "reports")
        yield connected
        await connected.close()


def progress(recorded: int) -> RecordedProgress:
    return RecordedProgress("run", RunCounts(1, (TaskCounts("t", recorded),)))


def payload(recorded: int) -> bytes:
    return progress_to_proto(progress(recorded)).SerializeToString()


@pytest.mark.parametrize(
    "headers",
    [
        None,
        {PROGRESS_PROOF: ""},
        {PROGRESS_PROOF: "\u00e9"},
        {PROGRESS_PROOF: progress_proof(payload(9), "a key of its own")},
        # That of another report.
        {PROGRESS_PROOF: progress_proof(payload(1), SHARD_KEY)},
    ],
)
async def test_a_report_counts_only_with_the_proof_of_results(
    connection: Client, headers: dict[str, str] | None
) -> None:
    tracker = ProgressTracker()
    await NatsProgressReports(connection, tracker, SystemClock(), SHARD_KEY).start()
    await connection.publish(progress_subject("run"), payload(9), headers=headers)
    await NatsProgressPublisher(connection, SHARD_KEY).publish(progress(2))
    # Messages of one connection arrive in their order.
    await eventually(lambda: tracker.counts("run", 1) is not None, "the report of results counts")
    counts = tracker.counts("run", 1)
    assert counts is not None
    assert counts.recorded == 2
