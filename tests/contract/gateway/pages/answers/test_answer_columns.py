"""Columns of the list of answers: what is the same in all rows gives way to what tells them apart."""

import re

import pytest

from proctor.v1 import outcome_pb2, run_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, summary_of
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness

RESULTS = f"/runs/{RUN_ID}/results"


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running(tasks=2)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    return run


async def columns(
    harness: GatewayHarness, *outcomes: outcome_pb2.RecordedOutcome, query: str = ""
) -> set[str]:
    """Those that are shown of the columns which may be hidden."""
    harness.results.outcomes[RUN_ID] = list(outcomes)
    head = (await show(harness, RESULTS + query)).html.partition("</thead>")[0]
    return {name for name in ("Outcome", "Target") if re.search(rf">{name}\b", head)}


@pytest.mark.parametrize(
    ("begin", "end"), [("request-", ""), ("", "-of-the-batch"), ("request-", "-of-the-batch")]
)
async def test_ids_that_are_alike_show_what_tells_them_apart(
    harness: GatewayHarness, begin: str, end: str
) -> None:
    harness.results.outcomes[RUN_ID] = [recorded(at, row_id=f"{begin}{at}{end}") for at in range(12)]
    shown = (await show(harness, RESULTS)).html
    before = f'<span class="shared">{begin}</span>' if begin else ""
    after = f'<span class="shared end">{end}</span>' if end else ""
    assert f"{before}7{after}</code>" in shown


async def test_ids_with_little_in_common_are_shown_whole(harness: GatewayHarness) -> None:
    harness.results.outcomes[RUN_ID] = [recorded(0, row_id="a-1-z"), recorded(1, row_id="a-2-z")]
    assert 'class="shared' not in (await show(harness, RESULTS)).html


async def test_columns_that_are_the_same_in_all_rows_are_hidden(harness: GatewayHarness) -> None:
    right, wrong = ({"acc": score} for score in (1.0, 0.0))
    both = [recorded(0, scores=right, target="a"), recorded(1, scores=wrong, target="b")]
    assert await columns(harness, *both) == {"Outcome", "Target"}
    alike = [recorded(at, scores=right, target="a") for at in range(3)]
    # Rows that are right by chance say so; those that were filtered by it do not say it again.
    assert await columns(harness, *alike) == {"Outcome"}
    assert await columns(harness, *alike, query="?status=right") == set()
    harness.results.summaries[RUN_ID].ClearField("tasks")
    assert await columns(harness, recorded(0), recorded(1)) == set()
    # A single row has its target.
    assert await columns(harness, recorded(0, target="a")) == {"Target"}


async def test_rows_of_several_tasks_name_theirs(harness: GatewayHarness) -> None:
    rows = [recorded(at, task=f"task_{at % 2}") for at in range(4)]
    harness.results.outcomes[RUN_ID] = rows
    assert (await show(harness, RESULTS)).html.count('<div class="cut muted">task_1</div>') == 2
    harness.results.outcomes[RUN_ID] = rows[::2]
    assert '<div class="cut muted">' not in (await show(harness, RESULTS)).html
