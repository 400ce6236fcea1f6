"""Lists are pushed while a page shows them, also what is ordered meanwhile; a batch until it has ended."""

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest

from proctor.v1 import batch_service_pb2 as batch_pb2
from proctor.v1 import run_pb2
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.live import views
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, socket
from tests.fakes.gateway.dataset_runs import DATASET, stored_run
from tests.fakes.gateway.dataset_service import stored_dataset
from tests.fakes.gateway.gateway_harness import GatewayHarness

BATCH = f"batch_{0:032x}"
SECONDS = 20


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_READ_EVERY_SECONDS", 0.3)
    monkeypatch.setattr(views, "_MIN_SECONDS", 0.1)


async def pushed(harness: GatewayHarness, path: str) -> str:
    """The address of the socket that the page opens."""
    shown = await show(harness, path)
    [address] = [str(each["hx-ws:connect"]) for _, each in shown.elements if "hx-ws:connect" in each]
    assert 'id="stale"' in shown.html
    assert address.endswith(f"build={Assets.load().digest}")
    return address


def put_dataset(harness: GatewayHarness) -> None:
    datasets = harness.scheduler.datasets
    datasets.kept[DATASET] = stored_dataset(DATASET, name="rows.jsonl")
    datasets.rows[DATASET] = []


async def awaited(ws: aiohttp.ClientWebSocketResponse, text: str) -> str:
    """The first message that has a text."""
    async with asyncio.timeout(SECONDS):
        while text not in (message := await ws.receive_str()):
            pass
    return message


@pytest.mark.parametrize("path", ["/", "/runs", "/datasets/runs", f"/datasets/{DATASET}"])
async def test_a_run_that_is_ordered_meanwhile_is_pushed(harness: GatewayHarness, path: str) -> None:
    put_dataset(harness)
    async with socket(harness, await pushed(harness, path)) as ws:
        await awaited(ws, "tick")
        run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
        await awaited(ws, f"/runs/{run.run_id}")
    # No stream of a run is opened for a list, however many go.
    assert harness.scheduler.watches_open == 0


async def test_runs_over_one_data_set_are_pushed_alone_and_renewed_where_nothing_is_pushed(
    harness: GatewayHarness,
) -> None:
    put_dataset(harness)
    path = f"/datasets/{DATASET}"
    async with socket(harness, await pushed(harness, path)) as ws:
        await awaited(ws, "No run has used it yet.")
    assert harness.scheduler.listed[-1].dataset_id == DATASET
    part = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#live"}
    renewed = await show(harness, path, headers=part)
    assert 'id="live"' in renewed.html
    assert "HX-Push-Url" not in renewed.headers


async def test_overview_that_renews_itself_is_no_step_to_go_back_to(harness: GatewayHarness) -> None:
    part = {"HX-Request": "true", "HX-Request-Type": "partial", "HX-Current-URL": f"{harness.http}/?days=7"}
    assert "HX-Push-Url" not in (await show(harness, "/?days=7", headers=part)).headers
    assert (await show(harness, "/?days=8", headers=part)).headers["HX-Push-Url"] == "/?days=8"


async def test_a_list_is_read_with_the_filters_of_its_page(harness: GatewayHarness) -> None:
    harness.scheduler.put(running())
    async with socket(harness, await pushed(harness, "/runs?state=running&suite=glue&after=token")) as ws:
        await awaited(ws, "tick")
    asked = harness.scheduler.listed[-1]
    assert (asked.benchmark, asked.state, asked.page_token) == ("glue", run_pb2.RUN_STATE_RUNNING, "token")


async def test_pages_of_one_list_share_what_is_read_whatever_else_their_addresses_have(
    harness: GatewayHarness,
) -> None:
    address = await pushed(harness, "/runs")
    async with AsyncExitStack() as opened:
        watching = [
            await opened.enter_async_context(socket(harness, f"{address}&other={number}"))
            for number in range(5)
        ]
        for ws in watching:
            await awaited(ws, "tick")
        before = len(harness.scheduler.listed)
        for _ in range(4):
            await awaited(watching[-1], "is_changed")
        # Each for itself would have read twenty times.
        assert len(harness.scheduler.listed) - before <= 8


async def test_only_changes_are_sent_again_and_others_say_that_nothing_has_changed(
    harness: GatewayHarness,
) -> None:
    async with socket(harness, await pushed(harness, "/queue")) as ws:
        await awaited(ws, "Nothing runs")
        assert await awaited(ws, "is_changed") == '{"is_changed":false}'
        run = running()
        harness.scheduler.queue.queue.running.append(run)
        await awaited(ws, f"/runs/{RUN_ID}")


async def test_a_page_that_joins_gets_nothing_that_was_read_before(harness: GatewayHarness) -> None:
    """Else a run that was deleted just now would come back."""
    run = stored_run(harness)
    address = await pushed(harness, "/runs")
    async with socket(harness, address) as first:
        await awaited(first, run.run_id)
        del harness.scheduler.runs[run.run_id]
        async with socket(harness, address) as second:
            assert run.run_id not in await awaited(second, "tick")


async def test_batches_are_pushed_and_a_batch_until_it_has_ended(harness: GatewayHarness) -> None:
    batch = batch_pb2.Batch(batch_id=BATCH, state=batch_pb2.BATCH_STATE_IN_PROGRESS, run_id=RUN_ID)
    harness.scheduler.batches.kept[BATCH] = batch
    async with socket(harness, await pushed(harness, "/batches")) as ws:
        await awaited(ws, "in progress")
    async with socket(harness, await pushed(harness, f"/batches/{BATCH}")) as ws:
        await awaited(ws, "tick")
        batch.state = batch_pb2.BATCH_STATE_COMPLETED
        await awaited(ws, f'hx-get="/batches/{BATCH}" hx-trigger="load"')
        await ws.receive(timeout=SECONDS)
        assert ws.close_code == 1000
    assert "hx-ws:connect" not in (await show(harness, f"/batches/{BATCH}")).html


async def test_a_later_page_on_which_nothing_goes_has_no_socket(harness: GatewayHarness) -> None:
    stored_run(harness)
    assert "hx-ws:connect" in (await show(harness, "/runs")).html
    assert "hx-ws:connect" not in (await show(harness, "/runs?after=token")).html
