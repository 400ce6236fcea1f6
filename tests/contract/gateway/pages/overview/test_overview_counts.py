"""The figures of the overview: which runs are counted, and averages that are over one suite each."""

from proctor.v1 import run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show
from tests.fakes.gateway.gateway_harness import GatewayHarness


def card(html: str, title: str) -> str:
    return html.partition(f"<dt>{title}")[2].partition("</div>")[0]


async def test_each_suite_has_its_own_average(harness: GatewayHarness) -> None:
    page = harness.results.entries.page
    scores = (("flores", 27.0), ("glue", 0.8), ("glue", 0.4))
    for number, (suite, score) in enumerate(scores):
        entry = page.entries.add(run_id=f"{RUN_ID[:-1]}{number}", model="vllm/a", benchmark=suite)
        entry.figure.mean = score
        entry.closed_at.FromSeconds(1_700_000_000 + number)
    page.total = 3
    averages = card((await show(harness, "/")).html, "Average")
    first, second = averages.split("<dd>")[1:]
    assert ("60.0" in first, "over 2 runs of glue" in first) == (True, True)
    assert "over 1 run of flores" in second


async def test_completed_runs_of_suites_or_of_the_chosen_suite_are_counted(harness: GatewayHarness) -> None:
    harness.results.entries.page.total = 10
    run = running()
    harness.scheduler.put(run)
    html = (await show(harness, "/")).html
    assert ("10" in card(html, "Runs"), "in all" in card(html, "Runs")) == (True, False)
    assert f"/runs/{run.run_id}" in html
    other = (await show(harness, "/?suite=other")).html
    assert ("Newest runs of other" in other, harness.scheduler.listed[-1].benchmark) == (True, "other")
    assert "/socket?suite=other&amp;build=" in other
    everything, of_suite = [each for each in harness.results.entries.pages_asked if not each.includes_totals]
    assert {each.state for each in (everything, of_suite)} == {run_pb2.RUN_STATE_COMPLETED}
    assert (everything.kind, of_suite.benchmark) == (run_pb2.RUN_KIND_SUITE, "other")


async def test_overview_says_that_no_run_was_closed(harness: GatewayHarness) -> None:
    html = (await show(harness, "/?suite=glue")).html
    assert "No run with this metric was completed in the last 30 days." in html
    assert "in the last day, and" in (await show(harness, "/?suite=glue&days=1")).html
    assert "data-found" not in html.partition('id="trend"')[0]


async def test_newest_results_have_an_id_their_figures_and_when_they_were_done(
    harness: GatewayHarness,
) -> None:
    page = harness.results.entries.page
    for number in range(10):
        entry = page.entries.add(run_id=f"{number}{RUN_ID[1:]}", model="vllm/a", benchmark="glue")
        entry.figure.mean = 0.5 + number / 100
        entry.closed_at.FromSeconds(1_700_000_000 - number)
    html = (await show(harness, "/")).html
    table = html.partition('id="recent"')[2].partition("</section>")[0]
    assert table.count("<tr>") == 1 + 8
    # The fake has one figure whatever metric is asked for.
    assert table.count("57.0") == 3
    assert "58.0" not in table
    asked = harness.results.entries.closed_asked[-2:]
    assert {each.metric for each in asked} == {"accuracy", "f1"}


async def test_cost_is_that_of_all_runs_with_a_price(harness: GatewayHarness) -> None:
    assert "no price known" in card((await show(harness, "/")).html, "Cost")
    totals = harness.results.entries.page.totals
    totals.cost, totals.priced_runs, totals.currency = 12.5, 3, "EUR"
    cost = card((await show(harness, "/?days=7")).html, "Cost")
    assert ("12.50 EUR" in cost, "of 3 priced runs in the last 7 days" in cost) == (True, True)
    asked = [each for each in harness.results.entries.pages_asked if each.includes_totals][-1]
    assert (asked.days, asked.kind, asked.state) == (
        7,
        run_pb2.RUN_KIND_UNSPECIFIED,
        run_pb2.RUN_STATE_UNSPECIFIED,
    )
