"""Sockets of live pages: one stream per run for all who watch, small fragments, limits, who may listen."""

import asyncio
import re
from contextlib import AsyncExitStack

import aiohttp
import pytest
from structlog.testing import capture_logs

from proctor.v1 import model_pb2, run_pb2
from services.gateway.pages.asset_files import Assets
from services.gateway.pages.live import part
from services.gateway.pages.runs import live
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, socket, summary_of
from tests.fakes.eventually import eventually
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness

SOCKET = f"/runs/{RUN_ID}/socket?build={Assets.load().digest}"
MAX_BYTES = 4000


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running()
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    return run


async def test_all_who_watch_share_one_stream_and_get_the_same_fragment(harness: GatewayHarness) -> None:
    async with AsyncExitStack() as opened:
        sockets = [await opened.enter_async_context(socket(harness, SOCKET)) for _ in range(20)]
        fragments = {(await each.receive_str())[:80] for each in sockets}
        assert harness.scheduler.watches_open == 1
        assert all("tick" in fragment for fragment in fragments)


async def test_fragment_of_a_suite_of_eight_tasks_is_small(harness: GatewayHarness) -> None:
    async with socket(harness, SOCKET) as ws:
        fragment = await ws.receive_str()
        assert "task_7" in fragment
        assert len(fragment.encode()) < MAX_BYTES


@pytest.mark.parametrize(
    ("order", "named"),
    [({"suite": "starter"}, ["sentiment"]), ({"suite": "glue", "tasks": ["rte", "sst2"]}, ["rte", "sst2"])],
)
async def test_a_run_that_waits_has_the_rows_of_all_its_tasks(
    harness: GatewayHarness, run: run_pb2.Run, order: dict[str, object], named: list[str]
) -> None:
    run.state = run_pb2.RUN_STATE_PENDING
    run.progress.Clear()
    run.order.MergeFrom(run_pb2.RunOrder(**order))  # type: ignore[arg-type]  # fields of an order
    harness.scheduler.put(run)
    async with socket(harness, SOCKET) as ws:
        for html in ((await show(harness, f"/runs/{RUN_ID}")).html, await ws.receive_str()):
            assert re.findall(r'<tr id="t\d+"><th scope="row">([^<]+)', html) == named
            assert '0<span class="muted"> / –' in html


async def test_push_comes_while_nothing_changes_so_that_the_page_is_not_stale(
    harness: GatewayHarness,
) -> None:
    async with socket(harness, SOCKET) as ws:
        for _ in range(3):
            assert "tick" in await ws.receive_str(timeout=4)


async def test_figures_that_take_long_hold_up_no_push(harness: GatewayHarness) -> None:
    harness.results.summaries_come = asyncio.Event()
    async with socket(harness, SOCKET) as ws, asyncio.timeout(20):
        for recorded in (1, 2, 3):
            changed = running()
            changed.progress.recorded = recorded
            harness.scheduler.put(changed)
            while f'value="{recorded}" max="16000"' not in await ws.receive_str():
                pass
    harness.results.summaries_come.set()


async def test_what_the_engine_does_is_shown_and_pushed(harness: GatewayHarness, run: run_pb2.Run) -> None:
    run.pool = "local"
    harness.scheduler.put(run)
    harness.scheduler.engine_load = model_pb2.EngineLoad(
        running_requests=48, waiting_requests=1203, kv_cache_usage=0.875
    )
    page = (await show(harness, f"/runs/{RUN_ID}")).html
    async with socket(harness, SOCKET) as ws:
        for html in (page, await ws.receive_str()):
            words = " ".join(re.sub("<[^>]*>", " ", html).replace("\u2009", "").split())
            assert "Engine 48 running 1203 waiting KV cache 88 %" in words
            assert "Time left 6 min 19 s 5 min 26 s – 7 min 31 s" in words
            assert "Speed 102 /s Generated 6195 tok/s" in words


async def test_scheduler_that_hangs_is_not_shown_as_new(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("_SILENT_SECONDS", 0.5), ("_QUIET_SECONDS", 0.3), ("_FIGURES_SECONDS", 0.1)):
        monkeypatch.setattr(live, name, seconds)
    harness.scheduler.workers_come = asyncio.Event()
    async with socket(harness, SOCKET) as ws:
        # The pushes stop.
        for _ in range(50):
            try:
                await ws.receive_str(timeout=3)
            except TimeoutError:
                break
        else:
            pytest.fail("a scheduler that hangs is shown as new")
        harness.scheduler.workers_come.set()
        assert "tick" in await ws.receive_str(timeout=10)


async def test_ended_run_closes_normally_and_the_page_asks_for_its_figures(
    harness: GatewayHarness, run: run_pb2.Run
) -> None:
    async with socket(harness, SOCKET) as ws:
        await ws.receive_str()
        run.state = run_pb2.RUN_STATE_COMPLETED
        harness.scheduler.put(run)
        messages = [message async for message in ws]
        assert f'hx-get="/runs/{RUN_ID}"' in messages[-1].data
        assert ws.close_code == 1000


async def test_stream_ends_some_time_after_the_last_page_has_gone(harness: GatewayHarness) -> None:
    async with socket(harness, SOCKET) as ws:
        await ws.receive_str()
    await eventually(lambda: harness.scheduler.watches_open == 0, "the stream is closed", 40)


async def test_socket_ends_after_a_while_so_that_the_key_is_looked_at_again(
    harness: GatewayHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part, "_MAX_AGE_SECONDS", 0.5)
    async with asyncio.timeout(20), socket(harness, SOCKET) as ws:
        await _drained(ws)
        # The page connects again at once.
        assert ws.close_code == 1011


async def test_page_of_another_version_is_asked_to_load_again(harness: GatewayHarness) -> None:
    async with socket(harness, f"/runs/{RUN_ID}/socket?build=0123456789ab") as ws:
        notice = await ws.receive_json()
        # Beside what the page shows, which stays.
        assert ("upgraded" in notice["content"], notice["target"]) == (True, "#stale")
        await ws.receive()
        assert ws.close_code == 1000


async def test_run_that_does_not_exist_closes_normally(harness: GatewayHarness) -> None:
    async with socket(harness, SOCKET.replace(RUN_ID, f"{RUN_ID[:-1]}9")) as ws:
        await ws.receive()
        assert ws.close_code == 1000


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}]
)
async def test_page_of_another_site_cannot_listen(harness: GatewayHarness, headers: dict[str, str]) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with socket(harness, SOCKET, **headers):
            pass
    assert refused.value.status in {403, 421}
    assert harness.scheduler.watches_open == 0


async def test_sockets_have_limits_of_their_own() -> None:
    async with gateway_harness(max_live_pages=3, max_live_pages_per_user=2) as full:
        full.scheduler.put(running())
        async with socket(full, SOCKET), socket(full, SOCKET):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                async with socket(full, SOCKET):
                    pass
            assert refused.value.status == 429
            async with socket(full, SOCKET, **{"X-Proctor-User": "other"}):
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    async with socket(full, SOCKET, **{"X-Proctor-User": "third"}):
                        pass
                assert refused.value.status == 503


async def test_socket_has_one_line_in_the_log_with_its_user(harness: GatewayHarness) -> None:
    with capture_logs() as lines:
        async with socket(harness, SOCKET, **{"X-Proctor-User": "alice"}) as ws:
            await ws.receive_str()

        def logged() -> list[tuple[str, int]]:
            return [(line["user"], line["status"]) for line in lines if line["event"] == "http request"]

        await eventually(lambda: logged() == [("alice", 101)], "the line is written")


async def test_message_that_is_too_long_ends_the_socket_only(harness: GatewayHarness) -> None:
    async with socket(harness, SOCKET) as ws:
        await ws.send_str("x" * 100_000)
        messages = [message async for message in ws]
        assert ws.close_code == 1009, messages
    async with socket(harness, SOCKET) as ws:
        assert "tick" in await ws.receive_str()


async def test_stopped_gateway_closes_sockets_at_once(harness: GatewayHarness) -> None:
    async with socket(harness, SOCKET) as ws:
        await ws.receive_str()
        assert harness.gateway
        async with asyncio.timeout(5):
            await asyncio.gather(harness.gateway.http.stop(), _drained(ws))
        assert ws.close_code == 1012


async def _drained(ws: aiohttp.ClientWebSocketResponse) -> None:
    async for _ in ws:
        pass
