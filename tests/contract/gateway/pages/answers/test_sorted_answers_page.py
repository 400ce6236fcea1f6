"""The order of a run's answers and a class of its failures, as the address of their page has them."""

import pytest

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, summary_of
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness

PATH = f"/runs/{RUN_ID}/results"


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> None:
    run = running(tasks=2)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    harness.results.outcomes[RUN_ID] = [recorded(0, task="task_0", scores={"acc": 1.0})]


@pytest.mark.parametrize(
    ("given", "sort", "is_descending"),
    [
        ("-time", results_pb2.OUTCOME_SORT_TIME, True),
        ("length", results_pb2.OUTCOME_SORT_LENGTH, False),
        ("score", results_pb2.OUTCOME_SORT_SCORE, False),
        ("id", results_pb2.OUTCOME_SORT_SAMPLE, False),
        ("nonsense", results_pb2.OUTCOME_SORT_UNSPECIFIED, False),
    ],
)
async def test_the_address_says_how_the_list_is_sorted(
    harness: GatewayHarness, given: str, sort: int, *, is_descending: bool
) -> None:
    page = await show(harness, f"{PATH}?sort={given}")
    asked = harness.results.outcomes_asked[-1]
    assert (asked.sort, asked.is_descending) == (sort, is_descending)
    ways = [attributes["aria-sort"] for tag, attributes in page.elements if "aria-sort" in attributes]
    assert [way for way in ways if way != "none"] == ["descending" if is_descending else "ascending"]
    # A second click on a column turns its order, and keeps the filters.
    assert "sort=time" in (await show(harness, f"{PATH}?sort=-time&task=task_0")).html


async def test_a_class_of_failures_is_a_filter(harness: GatewayHarness) -> None:
    page = await show(harness, f"{PATH}?status=failed&failure=timeout")
    assert harness.results.outcomes_asked[-1].filter.failure_class == outcome_pb2.FAILURE_CLASS_TIMEOUT
    assert '<option value="timeout" selected>' in page.html
    await show(harness, f"{PATH}?failure=of-no-kind")
    assert not harness.results.outcomes_asked[-1].HasField("filter")


@pytest.mark.parametrize(
    ("query", "is_golden", "is_marked_wrong"),
    [("marked=golden", True, False), ("marked=wrong", False, True), ("golden=1", True, False)],
)
async def test_marks_are_a_filter(
    harness: GatewayHarness, query: str, *, is_golden: bool, is_marked_wrong: bool
) -> None:
    await show(harness, f"{PATH}?{query}")
    chosen = harness.results.outcomes_asked[-1].filter
    assert (chosen.is_golden, chosen.is_marked_wrong) == (is_golden, is_marked_wrong)
