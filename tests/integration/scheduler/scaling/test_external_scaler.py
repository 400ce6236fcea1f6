"""KEDA's side of the contract: its calls, in its order, against two replicas of the scheduler."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from proctor.keda.externalscaler_pb2 import (
    GetMetricsRequest,
    ScaledObjectRef,
)
from services.common.grpc.errors import remote_error
from tests.fakes.scheduler.autoscaled_pool import FakeAutoscaler, ScaledObjectSpec
from tests.fakes.scheduler.served_scheduler import ServedScheduler, served_scheduler, standby_scheduler, until

OBJECT = ScaledObjectRef(
    name="proctor-worker-remote", namespace="proctor", scalerMetadata={"pool": "remote", "scalerAddress": "x"}
)


@asynccontextmanager
async def pushes(scheduler: ServedScheduler) -> AsyncIterator["asyncio.Queue[bool]"]:
    """What StreamIsActive sends, as it comes."""
    received: asyncio.Queue[bool] = asyncio.Queue()

    async def follow() -> None:
        async for response in scheduler.scaler.StreamIsActive(OBJECT):
            received.put_nowait(response.result)

    following = asyncio.create_task(follow())
    try:
        yield received
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def workers(scheduler: ServedScheduler) -> float:
    """As KEDA polls: the spec, then each metric of it."""
    [spec] = (await scheduler.scaler.GetMetricSpec(OBJECT)).metricSpecs
    assert (spec.targetSize, spec.targetSizeFloat) == (1, 1.0)
    request = GetMetricsRequest(scaledObjectRef=OBJECT, metricName=spec.metricName)
    [value] = (await scheduler.scaler.GetMetrics(request)).metricValues
    assert value.metricName == spec.metricName
    assert value.metricValue == value.metricValueFloat
    return value.metricValueFloat


async def is_active(scheduler: ServedScheduler) -> bool:
    return bool((await scheduler.scaler.IsActive(OBJECT)).result)


async def test_pool_goes_from_no_worker_to_some_and_back_with_its_runs(tmp_path: Path) -> None:
    async with (
        served_scheduler(tmp_path) as leader,
        standby_scheduler(leader.settings, leader.nats) as standby,
        pushes(standby) as pushed,
    ):

        async def is_known() -> bool:
            try:
                return not await is_active(leader)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return False

        await until(is_known)
        latest = await workers(leader)
        scaler = FakeAutoscaler(ScaledObjectSpec(max_replicas=4, cooldown_seconds=30), lambda: latest)
        scaler.poll(0)
        assert (latest, scaler.replicas) == (0, 0)

        run_id = await leader.submit()
        assert await asyncio.wait_for(pushed.get(), 20)
        scaler.push()
        for replica in (leader, standby):
            await until(lambda replica=replica: is_active(replica))  # type: ignore[misc]  # bound by default
        latest = await workers(standby)
        scaler.poll(15)
        scaler.sync(15)
        assert latest == 1
        assert scaler.replicas == 1

        await leader.worker.send_heartbeat()
        await leader.finish(run_id)

        async def is_idle() -> bool:
            return not await is_active(leader) and not await is_active(standby)

        await until(is_idle)
        latest = await workers(leader)
        for now in (30, 44):
            scaler.poll(now)
            scaler.sync(now)
            assert scaler.replicas == 1, "within the cool-down"
        scaler.poll(46)
        assert (latest, scaler.replicas) == (0, 0)
        assert pushed.empty()


async def test_trigger_that_names_no_pool_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with served_scheduler(tmp_path) as scheduler:
        for metadata in ({}, {"pool": "other"}):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await scheduler.scaler.IsActive(ScaledObjectRef(scalerMetadata=metadata))
            assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert remote_error(refused.value).message == "pool of the trigger's metadata is one of remote."
