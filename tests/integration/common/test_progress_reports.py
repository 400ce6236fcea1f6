"""Reports of progress over a real NATS."""

from collections.abc import AsyncIterator

import pytest_asyncio
from nats.aio.client import Client

from proctor.v1.work_messages_pb2 import ProgressReport, TaskCounts
from proctor.values.messaging import progress_subject
from services.common.clock import SystemClock
from services.common.nats.connection import connect_nats
from services.scheduler.progress.nats import NatsProgressReports
from services.scheduler.progress.progress_tracker import ProgressTracker
from tests.fakes.eventually import eventually
from tests.harness.servers import nats_server


@pytest_asyncio.fixture
async def connection() -> AsyncIterator[Client]:
    async with nats_server() as server:
        connected = await connect_nats(server.address, "reports")
        yield connected
        await connected.close()


async def test_a_report_counts_only_under_the_subject_of_its_run(connection: Client) -> None:
    tracker = ProgressTracker()
    await NatsProgressReports(connection, tracker, SystemClock()).start()
    for run, subject in (("forged", "another"), ("own", "own")):
        report = ProgressReport(run_id=run, epoch=1, tasks=[TaskCounts(task="t", recorded=1)])
        await connection.publish(progress_subject(subject), report.SerializeToString())
    # Messages of one connection arrive in their order.
    await eventually(lambda: tracker.counts("own", 1) is not None, "the own report counts")
    assert tracker.counts("forged", 1) is None
