"""Reports of progress over a real NATS."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from nats.aio.client import Client
from structlog.testing import capture_logs

from proctor.values.messaging import progress_subject
from proctor.values.run import RunCounts, TaskCounts
from proctor.wire.proofs import PROGRESS_PROOF, progress_proof
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.results.outcomes.nats import NatsProgressPublisher
from services.results.runs.proto import progress_to_proto
from services.results.runs.run_plan import RecordedProgress
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ProgressTracker
from tests.fakes.dispatch_proof_key import DISPATCH_PROOF_KEY
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.surroundings import SetClock
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


def has_recorded(tracker: ProgressTracker, recorded: int) -> bool:
    counts = tracker.counts("run", 1)
    return counts is not None and counts.recorded == recorded


@pytest.mark.parametrize(
    "headers",
    [
        None,
        {PROGRESS_PROOF: ""},
        {PROGRESS_PROOF: "\u00e9"},
        {PROGRESS_PROOF: progress_proof(payload(9), "a key of its own")},
        # That of another report.
        {PROGRESS_PROOF: progress_proof(payload(1), DISPATCH_PROOF_KEY)},
    ],
)
async def test_a_report_counts_only_with_the_proof_of_results(
    connection: Client, headers: dict[str, str] | None
) -> None:
    tracker = ProgressTracker()
    await NatsProgressReports(connection, tracker, SystemClock(), DISPATCH_PROOF_KEY).start()
    await connection.publish(progress_subject("run"), payload(9), headers=headers)
    await NatsProgressPublisher(connection, DISPATCH_PROOF_KEY).publish(progress(2))
    # Messages of one connection arrive in their order.
    await eventually(lambda: tracker.counts("run", 1) is not None, "the report of results counts")
    assert has_recorded(tracker, 2)


async def test_dropped_reports_are_logged_once_in_a_while_with_their_number(connection: Client) -> None:
    tracker, clock = ProgressTracker(), SetClock()
    await NatsProgressReports(connection, tracker, clock, DISPATCH_PROOF_KEY).start()
    with capture_logs() as lines:
        for proved, seconds in ((3, 0), (4, 59), (5, 1)):
            clock.seconds += seconds
            for recorded in (1, 2):
                await connection.publish(progress_subject("run"), payload(recorded))
            await NatsProgressPublisher(connection, DISPATCH_PROOF_KEY).publish(progress(proved))
            await eventually(partial(has_recorded, tracker, proved), "the reports have arrived")
    assert [line["dropped"] for line in lines if line["log_level"] == "warning"] == [1, 4]
