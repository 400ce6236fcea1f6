"""A run that goes, on its page: how far it is stands first, then how fast it is."""

import re

from proctor.v1 import run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show
from tests.fakes.gateway.gateway_harness import GatewayHarness


async def test_progress_has_its_share_and_stands_above_the_charts(harness: GatewayHarness) -> None:
    harness.scheduler.put(running(tasks=2))
    html = (await show(harness, f"/runs/{RUN_ID}")).html
    assert re.search(r"of 4.000, 50 %", html)
    assert html.index('class="big"') < html.index('<live-chart series="speed"')


async def test_run_that_is_not_planned_has_no_share(harness: GatewayHarness) -> None:
    run = running(tasks=0)
    run.state = run_pb2.RUN_STATE_PENDING
    harness.scheduler.put(run)
    html = (await show(harness, f"/runs/{RUN_ID}")).html
    assert re.search(r"of –\s*</span>", html)
