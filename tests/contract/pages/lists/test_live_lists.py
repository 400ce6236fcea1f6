"""Lists are pushed while a page shows them, also what is ordered meanwhile; a batch until it has ended."""

import aiohttp
import pytest

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import run_pb2
from services.gateway.pages.asset_files import Assets
from tests.contract.pages.shown_pages import RUN_ID, running, show, socket
from tests.fakes.eventually import eventually
from tests.fakes.gateway.dataset_runs import stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness

BATCH = f"batch_{0:032x}"


async def pushed(harness: GatewayHarness, path: str) -> str:
    """The address of the socket that the page opens."""
    shown = await show(harness, path)
    [address] = [str(each["hx-ws:connect"]) for _, each in shown.elements if "hx-ws:connect" in each]
    assert 'id="stale"' in shown.html
    assert address.endswith(f"build={Assets.load().digest}")
    return address


@pytest.mark.parametrize("path", ["/runs", "/runs?state=running&suite=glue", "/datasets/runs"])
async def test_a_run_that_is_ordered_meanwhile_is_pushed(harness: GatewayHarness, path: str) -> None:
    async with socket(harness, await pushed(harness, path)) as ws:
        assert "tick" in await ws.receive_str(timeout=10)
        run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
        while f"/runs/{run.run_id}" not in await ws.receive_str(timeout=10):
            pass


async def test_the_queue_is_pushed_when_a_run_of_it_changes(harness: GatewayHarness) -> None:
    run = running()
    harness.scheduler.put(run)
    harness.scheduler.queue.queue.running.append(run)
    async with socket(harness, await pushed(harness, "/queue")) as ws:
        assert f"/runs/{RUN_ID}" in await ws.receive_str(timeout=10)
        await eventually(lambda: harness.scheduler.watches_open == 1, "the run is watched")


async def test_batches_are_pushed_and_a_batch_until_it_has_ended(harness: GatewayHarness) -> None:
    batch = batch_pb2.Batch(batch_id=BATCH, state=batch_pb2.BATCH_STATE_IN_PROGRESS, run_id=RUN_ID)
    harness.scheduler.batches.kept[BATCH] = batch
    async with socket(harness, await pushed(harness, "/batches")) as ws:
        assert "in progress" in await ws.receive_str(timeout=10)
    async with socket(harness, await pushed(harness, f"/batches/{BATCH}")) as ws:
        await ws.receive_str(timeout=10)
        batch.state = batch_pb2.BATCH_STATE_COMPLETED
        last = ""
        while (message := await ws.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
            last = message.data
        assert f'hx-get="/batches/{BATCH}" hx-trigger="load"' in last
        assert ws.close_code == 1000
    assert "hx-ws:connect" not in (await show(harness, f"/batches/{BATCH}")).html
