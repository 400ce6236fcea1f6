"""Scoring stored answers again from a run's page: what results is asked, and what is shown of its answer."""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import run_pb2
from services.common.errors import ErrorKind
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

PATH = f"/runs/{RUN_ID}/rescore"
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running(tasks=2)
    run.state = run_pb2.RUN_STATE_COMPLETED
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    return run


async def sent(harness: GatewayHarness, headers: Mapping[str, str] | None = None, **fields: str) -> Shown:
    return await show(
        harness, PATH, method="POST", headers={**FORM, **(headers or {})}, body=urlencode(fields)
    )


async def test_form_offers_tasks_metrics_and_rules(harness: GatewayHarness) -> None:
    page = await show(harness, f"{PATH}?task=task_1&metric=numeric&rule=last_number&reasoning=keep")
    chosen = [a.get("value", "") for tag, a in page.elements if tag == "option" and "selected" in a]
    assert chosen == ["task_1", "", "last_number", "keep"]
    assert "<option selected>numeric</option>" in page.html
    assert not harness.results.rescoring.asked


async def test_figures_are_shown_beside_those_that_are_recorded(harness: GatewayHarness) -> None:
    response = rescore_pb2.RescoreTaskResponse(changed=17, unscored=1)
    response.recorded.metrics.add(metric="exact_match", mean=0.5, ci_low=0.4, ci_high=0.6)
    response.summary.metrics.add(metric="exact_match", mean=0.75, ci_low=0.65, ci_high=0.85)
    response.summary.answered = 1999
    response.unscored_answers.add(row_id=HOSTILE, problem="it has no target")
    harness.results.rescoring.response = response
    page = await sent(harness, task="task_1", metric="exact_match", options='{"ignore_case": true}')
    assert page.status == 200
    [asked] = harness.results.rescoring.asked
    assert (asked.run_id, asked.task, asked.HasField("filters_json")) == (RUN_ID, "task_1", False)
    assert [(use.name, json.loads(use.options_json)) for use in asked.metrics] == [
        ("exact_match", {"ignore_case": True})
    ]
    assert all(part in page.html for part in ("50.0", "75.0", "+25.0", ">17<", "it has no target"))
    assert "<img" not in page.html


async def test_answers_without_a_score_have_the_numbers_of_their_rollouts(harness: GatewayHarness) -> None:
    response = rescore_pb2.RescoreTaskResponse(unscored=2)
    for number in range(2):
        response.unscored_answers.add(row_id="r1", rollout=number, problem="it has no target")
    harness.results.rescoring.response = response
    assert ">rollout " not in (await sent(harness, task="task_1")).html
    harness.scheduler.runs[RUN_ID].order.rollouts = 2
    page = await sent(harness, task="task_1")
    assert [f">rollout {number}</span>" in page.html for number in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("rule", "function"), [("first_line", "first_line"), ("last_number", "regex"), ("own", "take_first")]
)
async def test_a_rule_is_sent_as_a_filter_list(harness: GatewayHarness, rule: str, function: str) -> None:
    own = '[{"name": "read", "filter": [{"function": "take_first"}]}]'
    part = await sent(harness, PART, task="task_0", rule=rule, filters=own)
    assert part.status == 200
    assert part.headers["HX-Replace-Url"].startswith(f"{PATH}?task=task_0&rule={rule}")
    [asked] = harness.results.rescoring.asked
    [pipeline] = json.loads(asked.filters_json)
    assert pipeline["filter"][0]["function"] == function


async def test_the_whole_answer_is_no_filter_at_all(harness: GatewayHarness) -> None:
    await sent(harness, task="task_0", rule="none")
    [asked] = harness.results.rescoring.asked
    assert (asked.HasField("filters_json"), asked.filters_json) == (True, "")


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"rule": "own", "filters": "{"}, "fault-filters"),
        ({"rule": "own", "filters": "{}"}, "fault-filters"),
        ({"options": "[1]", "metric": "f1"}, "fault-options"),
        ({"options": '{"a": 1}'}, "fault-options"),
    ],
)
async def test_what_cannot_be_read_is_said_at_its_field(
    harness: GatewayHarness, fields: Mapping[str, str], fault: str
) -> None:
    page = await sent(harness, None, task="task_0", **fields)
    assert page.status == 422
    assert f'id="{fault}"' in page.html
    assert not harness.results.rescoring.asked


async def test_a_refusal_of_results_keeps_what_was_entered(harness: GatewayHarness) -> None:
    sentence = "metrics need log-probabilities, and the run was scored by generate"
    harness.results.rescoring.refusal = refused(
        ErrorKind.INVALID, "INVALID_PARAMETER", sentence, field="metrics"
    )
    page = await sent(harness, task="task_0", metric="acc_norm")
    assert page.status == 422
    assert sentence in page.html
    assert 'id="fault-metric"' in page.html
    assert "<option selected>acc_norm</option>" in page.html


async def test_a_run_without_figures_says_so(harness: GatewayHarness) -> None:
    harness.results.summaries.clear()
    page = await show(harness, PATH)
    assert page.status == 200
    assert "nothing to score again" in page.html


@pytest.mark.parametrize("reasoning", ["", "separate", "keep"])
async def test_reasoning_is_scored_as_the_form_says(harness: GatewayHarness, reasoning: str) -> None:
    page = await sent(harness, PART, task="task_1", reasoning=reasoning)
    [asked] = harness.results.rescoring.asked
    number = run_pb2.Reasoning.Value(f"REASONING_{reasoning.upper() or 'UNSPECIFIED'}")
    assert (page.status, asked.reasoning) == (200, number)
    assert ("reasoning=keep" in page.headers.get("HX-Replace-Url", "")) is (reasoning == "keep")


async def test_an_unknown_word_for_reasoning_is_a_fault(harness: GatewayHarness) -> None:
    page = await sent(harness, task="task_1", reasoning="some")
    assert (page.status, not harness.results.rescoring.asked) == (422, True)
    assert "Choose what is done with the reasoning of the model." in page.html
