"""A run that goes, on its page: how far it is stands first, then how fast it is."""

import re

from proctor.v1 import run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, summary_of
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


async def test_what_failed_of_an_ended_run_is_a_part_of_its_bar(harness: GatewayHarness) -> None:
    run = running(tasks=1)
    run.state, run.progress.recorded = run_pb2.RUN_STATE_FAILED, 2000
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    html = (await show(harness, f"/runs/{RUN_ID}")).html
    assert re.search(r'aria-label="1.908 answered and 92 failed of 2.000"', html)
    assert re.search(r'class="answered"\s+width="95.4%"', html)
    assert re.search(r'class="failed"\s+x="95.4%"\s+width="4.6%"', html)


async def test_all_parameters_of_the_order_stand_below_its_name(harness: GatewayHarness) -> None:
    run = running(tasks=1)
    run.order.params.temperature, run.order.params.top_p, run.order.params.seed = 0.7, 0.9, 7
    run.order.limit, run.order.prompt_form = 50, run_pb2.PROMPT_FORM_CHAT
    harness.scheduler.put(run)
    html = (await show(harness, f"/runs/{RUN_ID}")).html
    below = " ".join(html.partition('<p class="sub">')[2].partition("</p>")[0].split())
    for words in ("temperature 0.7", "top p 0.9", "seed 7", "limit rows per task 50", "sent as chat"):
        assert words in below, words
