"""Sockets of live grids: read once for all who watch, pushed when a run changes, closed at the end."""

import asyncio
from contextlib import AsyncExitStack

import aiohttp
import pytest

from proctor.v1 import outcome_pb2, rollout_service_pb2, run_pb2
from services.gateway.pages.asset_files import Assets
from tests.contract.gateway.pages.rollouts.shown_rollouts import FIRST, ORDER_ID, SECOND, put_rollouts
from tests.contract.gateway.pages.shown_pages import show, socket
from tests.fakes.gateway.gateway_harness import GatewayHarness

BUILD = f"build={Assets.load().digest}"
ORDER = f"/rollouts/{ORDER_ID}"


@pytest.fixture
def order(harness: GatewayHarness) -> rollout_service_pb2.RolloutsOrder:
    return put_rollouts(harness)


async def test_all_pages_of_an_order_share_what_is_read(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    assert order.order_id == ORDER_ID
    async with AsyncExitStack() as opened:
        path = f"{ORDER}/socket?from=0&{BUILD}"
        sockets = [await opened.enter_async_context(socket(harness, path)) for _ in range(5)]
        fragments = {await each.receive_str(timeout=10) for each in sockets}
        assert len(fragments) == 1
        assert 'id="tick"' in fragments.pop()
        assert harness.scheduler.watches_open == 0


async def test_a_change_is_pushed_and_the_end_closes_normally(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    async with asyncio.timeout(30), socket(harness, f"{ORDER}/socket?from=0&{BUILD}") as ws:
        assert 'value="5" max="8"' in await ws.receive_str(timeout=10)
        order.runs[1].progress.recorded = 3
        harness.scheduler.put(order.runs[1])
        while 'value="7" max="8"' not in await ws.receive_str(timeout=10):
            pass
        order.runs[1].state = run_pb2.RUN_STATE_COMPLETED
        harness.scheduler.put(order.runs[1])
        last = ""
        while (message := await ws.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
            last = message.data
        # The page loads itself with the figures.
        assert 'hx-trigger="load"' in last
        assert ws.close_code == 1000


async def test_one_run_is_pushed_by_itself(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    assert order.runs[0].run_id == FIRST
    async with socket(harness, f"/runs/{SECOND}/rollouts/socket?from=1&{BUILD}") as ws:
        fragment = await ws.receive_str(timeout=10)
        assert "double" in fragment
        assert FIRST not in fragment


async def test_the_list_of_orders_is_pushed_with_its_filters(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    async with asyncio.timeout(30), socket(harness, f"/rollouts/socket?suite=mine&{BUILD}") as ws:
        assert "5 of 8" in await ws.receive_str(timeout=10)
        assert harness.scheduler.rollouts.listed[-1].suite == "mine"
        order.runs[1].progress.recorded = 3
        harness.scheduler.put(order.runs[1])
        while "7 of 8" not in await ws.receive_str(timeout=10):
            pass


async def test_one_rollout_is_pushed_until_it_is_recorded(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    path = f"/runs/{SECOND}/rollouts/0/1"
    async with socket(harness, f"{path}/socket?{BUILD}") as ws:
        assert "not recorded yet" in await ws.receive_str(timeout=10)
        recorded = outcome_pb2.RecordedOutcome()
        recorded.CopyFrom(harness.results.outcomes[SECOND][0])
        recorded.outcome.rollout = 1
        harness.results.outcomes[SECOND].append(recorded)
        harness.scheduler.put(order.runs[1])
        last = ""
        while (message := await ws.receive(timeout=10)).type is aiohttp.WSMsgType.TEXT:
            last = message.data
        assert f'hx-get="{path}" hx-trigger="load"' in last
        assert ws.close_code == 1000


async def test_what_does_not_exist_closes_normally(harness: GatewayHarness) -> None:
    async with socket(harness, f"/rollouts/{SECOND}/socket?{BUILD}") as ws:
        await ws.receive(timeout=10)
        assert ws.close_code == 1000


async def test_the_page_is_pushed_or_renewed_as_its_address_says(
    harness: GatewayHarness, order: rollout_service_pb2.RolloutsOrder
) -> None:
    assert order.rollouts == 2
    pushed = (await show(harness, ORDER)).html
    assert f'hx-ws:connect="{ORDER}/socket?from=0&amp;{BUILD}"' in pushed
    assert "hx-ws" not in (await show(harness, f"{ORDER}?every=30")).html
    for every in ("1", "5", "30", "60"):
        assert f'hx-trigger="every {every}s"' in (await show(harness, f"{ORDER}?every={every}")).html
    assert "hx-ws:connect" in (await show(harness, f"{ORDER}?every=3")).html
