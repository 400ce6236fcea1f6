"""The bucket RUNS on a real NATS: live runs, and finished ones for a while."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from typing import cast

import nats
import pytest

from proctor.v1 import run_pb2, work_messages_pb2
from proctor.values.run import RunId, RunState
from proctor.values.scoring import ScoringMethod
from services.common.clock import SystemClock
from services.common.nats import streams
from services.common.nats.bucket import Bucket, BucketEntry
from services.common.nats.jetstream import JetStream
from services.common.nats.stream_maker import StreamMaker
from services.scheduler.rate_limits.rate_meter import RequestRetryBudget
from services.scheduler.runs.lifecycle import nats as lifecycle
from services.scheduler.runs.lifecycle.nats import NatsRunControls
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from tests.fakes.eventually import eventually
from tests.fakes.scheduler.surroundings import START
from tests.harness.servers import POOLS, nats_server


def run_of(number: int) -> Run:
    order = RunOrder("toy", "openai/fake")
    return Run(RunId(f"run-{number}"), order, "ann", "remote", ScoringMethod.GENERATE, START)


async def test_a_finished_run_expires_and_workers_see_it_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "FINAL_SECONDS", 1.0)
    async with nats_server() as server:
        connection = await nats.connect(server.address)
        bucket = Bucket(JetStream(connection), streams.RUNS_BUCKET)
        controls = NatsRunControls(connection, bucket, RequestRetryBudget(0.2), SystemClock())
        live, over = run_of(1), run_of(2)
        await controls.announce(live)
        await controls.announce(over)
        watching = cast("AsyncGenerator[BucketEntry]", bucket.watch())
        assert {(await anext(watching)).key for _ in range(2)} == {live.run_id, over.run_id}
        await controls.announce(replace(over, state=RunState.CANCELLED))
        assert (await anext(watching)).value is not None
        async with asyncio.timeout(30):
            gone = await anext(watching)
        assert (gone.key, gone.value) == (over.run_id, None)
        assert (await bucket.entries()).keys() == {live.run_id}
        await watching.aclose()
        await connection.close()


async def test_a_finished_run_that_is_retried_does_not_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "FINAL_SECONDS", 1.0)
    async with nats_server() as server:
        connection = await nats.connect(server.address)
        bucket = Bucket(JetStream(connection), streams.RUNS_BUCKET)
        controls = NatsRunControls(connection, bucket, RequestRetryBudget(0.2), SystemClock())
        retried, other = run_of(1), run_of(2)
        for run in (retried, other):
            await controls.announce(replace(run, state=RunState.CANCELLED))
        await controls.announce(replace(retried, epoch=2))

        async def is_other_gone() -> bool:
            return other.run_id not in await bucket.entries()

        await eventually(is_other_gone, "the one that was not retried expires", 30)
        assert (await bucket.entries()).keys() == {retried.run_id}
        await connection.close()


async def test_a_state_is_put_again_only_where_workers_would_not_have_it() -> None:
    async with nats_server() as server:
        connection = await nats.connect(server.address)
        jetstream = JetStream(connection)
        bucket = Bucket(jetstream, streams.RUNS_BUCKET)
        budget = RequestRetryBudget(0.2)
        leader = NatsRunControls(connection, bucket, budget, SystemClock())
        replica = NatsRunControls(connection, bucket, budget, SystemClock())
        run = replace(run_of(1), state=RunState.RUNNING, deadline=SystemClock().now() + timedelta(hours=1))
        await leader.refresh(run)
        first = await bucket.revision(run.run_id)
        await leader.refresh(run)
        assert await bucket.revision(run.run_id) == first
        # A replica that resumed the run says so late, when the leader has admitted it.
        await replica.announce(replace(run, state=RunState.PENDING, deadline=None))
        await leader.refresh(run)
        assert await bucket.revision(run.run_id) == first + 2
        assert (await _control(bucket, run.run_id)).state == run_pb2.RUN_STATE_RUNNING
        await leader.refresh(replace(run, deadline=SystemClock().now() + timedelta(hours=2)))
        assert (await _control(bucket, run.run_id)).time_left.ToTimedelta() > timedelta(minutes=61)
        # A bucket that was lost and made again has no keys.
        await connection.jsm().delete_stream("KV_RUNS")
        await StreamMaker(connection, POOLS).make_missing()
        await leader.refresh(run)
        assert (await bucket.entries()).keys() == {run.run_id}
        await connection.close()


async def _control(bucket: Bucket, run_id: RunId) -> work_messages_pb2.RunControl:
    return work_messages_pb2.RunControl.FromString(await bucket.get(run_id) or b"")
