"""The average of the overview: which runs it is over, and what it says of the others."""

import pytest

from tests.contract.gateway.pages.shown_pages import RUN_ID, show
from tests.fakes.gateway.gateway_harness import GatewayHarness


@pytest.mark.parametrize(
    ("filters", "average", "runs", "left_out"),
    [
        # Accuracies beside a figure of another unit.
        ("", "60.0", "2 runs of all suites", "1 in other units left out"),
        ("?metric=bleu_max", "9.4", "3 runs of all suites", ""),
        ("?suite=glue", "9.4", "3 runs<", ""),
    ],
)
async def test_runs_in_other_units_are_left_out_of_main_metrics_alone(
    harness: GatewayHarness, filters: str, average: str, runs: str, left_out: str
) -> None:
    page = harness.results.entries.page
    for number, score in enumerate((27.0, 0.8, 0.4)):
        entry = page.entries.add(run_id=f"{RUN_ID[:-1]}{number}", model="vllm/a", benchmark="glue")
        entry.figure.mean = score
        entry.closed_at.FromSeconds(1_700_000_000 + number)
    page.total = 3
    html = (await show(harness, f"/{filters}")).html
    card = html.partition("<dt>Average")[2].partition("</div>")[0]
    assert f"<dd>{average}</dd>" in card
    assert runs in card
    assert ("left out" in card, left_out in card) == (bool(left_out), True)


async def test_overview_says_that_no_run_was_closed(harness: GatewayHarness) -> None:
    html = (await show(harness, "/?suite=glue")).html
    assert "No run with this metric was closed in the last 30 days." in html
    assert "in the last day, " in (await show(harness, "/?suite=glue&days=1")).html
    assert "data-found" not in html.partition('id="trend"')[0]
