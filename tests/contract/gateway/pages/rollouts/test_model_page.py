"""A model on its page: its suites, data sets and rollouts side by side, and a model without runs."""

from proctor.v1 import run_pb2
from tests.contract.gateway.pages.rollouts.shown_rollouts import FIRST, put_rollouts
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness

MODEL = "vllm/org/small"


def put_history(harness: GatewayHarness, text: str = "") -> None:
    """A completed run over a suite, an older one over the same, one over a data set, and rollouts."""
    put_rollouts(harness)
    over_rows, older = f"{RUN_ID[:-1]}3", f"{RUN_ID[:-1]}4"
    for run_id in (RUN_ID, over_rows, older):
        run = running(1)
        run.run_id = run_id
        harness.scheduler.put(run)
        harness.results.summaries[run_id] = summary_of(run)
    harness.results.summaries[over_rows].cost = 0.25
    harness.scheduler.runs[RUN_ID].order.limit = 30
    page = harness.results.entries.page
    page.total = 4
    for run_id, suite, dataset in (
        (RUN_ID, "glue", ""),
        (older, "glue", ""),
        (over_rows, "ds_1", "rows"),
        (FIRST, "mine", ""),
    ):
        page.entries.add(
            run_id=run_id,
            benchmark=f"{suite}{text}",
            dataset_name=dataset and f"{dataset}.jsonl",
            state=run_pb2.RUN_STATE_COMPLETED,
            model=MODEL,
        )


async def test_the_latest_completed_run_of_each_benchmark_is_shown(harness: GatewayHarness) -> None:
    put_history(harness)
    shown = await show(harness, f"/models/{MODEL}")
    assert shown.status == 200
    for word in (
        "Suites",
        "Data sets",
        "Rollouts",
        "rows<wbr>.jsonl",
        "82.3",
        "first 30 rows",
        "0.25",
        "pass@2",
    ):
        assert word in shown.html, word
    links = [attributes.get("href") for tag, attributes in shown.elements if tag == "a"]
    assert {f"/runs/{RUN_ID}", f"/runs/{FIRST}"} <= set(links)
    assert f"/runs/{RUN_ID[:-1]}4" not in links
    [asked] = harness.results.entries.pages_asked
    assert asked.model == MODEL


async def test_a_model_without_runs_says_so(harness: GatewayHarness) -> None:
    shown = await show(harness, "/models/never/heard")
    assert (shown.status, "No run of this model is closed" in shown.html) == (404, True)
    assert "the search takes a part of a name" in shown.html
    # Its runs are not finished.
    harness.scheduler.ordered_models = ["never/heard"]
    assert (await show(harness, "/models/never/heard")).status == 200


async def test_hostile_names_stay_text(harness: GatewayHarness) -> None:
    put_history(harness, HOSTILE)
    shown = await show(harness, f"/models/{MODEL}")
    assert not [tag for tag, attributes in shown.elements if tag == "img" or "onerror" in attributes]
    assert "\u202e" not in shown.html


async def test_a_run_leads_to_its_model(harness: GatewayHarness) -> None:
    harness.scheduler.put(running())
    assert 'href="/models/vllm/Qwen/Qwen3-8B"' in (await show(harness, f"/runs/{RUN_ID}")).html
