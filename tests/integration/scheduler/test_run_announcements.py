"""The bucket RUNS on a real NATS: live runs, and no ended ones."""

from collections.abc import AsyncGenerator
from typing import cast

import nats

from proctor.values.run import RunId
from proctor.values.scoring import ScoringMethod
from services.common.clock import SystemClock
from services.common.nats import streams
from services.common.nats.bucket import Bucket, BucketEntry
from services.common.nats.jetstream import JetStream
from services.scheduler.rate_limits.rate_meter import RequestRetryBudget
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.scheduler.surroundings import START
from tests.harness.servers import nats_server


def run_of(number: int) -> Run:
    order = RunOrder("toy", "openai/fake")
    return Run(RunId(f"run-{number}"), order, "ann", "remote", ScoringMethod.GENERATE, START)


async def test_a_withdrawn_run_leaves_nothing_behind_and_workers_see_it_deleted() -> None:
    async with nats_server() as server:
        connection = await nats.connect(server.address)
        jetstream = JetStream(connection)
        bucket = Bucket(jetstream, streams.RUNS_BUCKET)
        controls = NatsRunControls(connection, bucket, RequestRetryBudget(0.2), SystemClock())
        live, over = run_of(1), run_of(2)
        await controls.announce(live)
        await controls.announce(over)
        heard: list[BucketEntry] = []
        watching = cast("AsyncGenerator[BucketEntry]", bucket.watch())
        heard += [await anext(watching), await anext(watching)]
        await controls.withdraw(over.run_id)
        gone = await anext(watching)
        assert (gone.key, gone.value) == (over.run_id, None)
        assert set(await controls.announced()) == {live.run_id, over.run_id}
        await controls.withdraw(over.run_id)
        assert await controls.announced() == [live.run_id]
        info = await connection.jetstream().stream_info("KV_RUNS")
        assert info.state.messages == 1
        await watching.aclose()
        await connection.close()
