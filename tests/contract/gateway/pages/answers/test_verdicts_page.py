"""Verdicts beside the answers of a judged run, and in words of their scale on the run of the judge."""

import csv
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.judging.scale import PAIRS
from tests.contract.gateway.pages.shown_pages import RUN_ID, running, show, summary_of
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

PATH = f"/runs/{RUN_ID}/results"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JUDGED = "8f3c2a10-0000-4000-8000-00000000000f"
JUDGING = "8f3c2a10-0000-4000-8000-0000000000aa"
SCORED, UNPARSED = outcome_pb2.OUTCOME_STATUS_SCORED, outcome_pb2.OUTCOME_STATUS_UNPARSED


def verdict(words: str, reason: str, judge: str = "p/strict", **more: Any) -> outcome_pb2.AnswerVerdict:
    of = outcome_pb2.AnswerJudge(run_id=f"{JUDGING[:-2]}{len(judge)}", model=judge, prompt="correctness")
    return outcome_pb2.AnswerVerdict(
        judge=of, sample=7, status=SCORED if words else UNPARSED, verdict=words, reason=reason, **more
    )


@pytest.fixture
def judged(harness: GatewayHarness) -> None:
    run = running(tasks=1)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    said = [
        verdict("yes", "<b>It</b> agrees.", score=1.0, agrees_with_people=False),
        verdict("", "I cannot say.", "p/lenient"),
    ]
    harness.results.outcomes[RUN_ID] = [
        recorded(
            0, task="task_0", scores={"acc": 1.0}, verdicts=said, disagreement=1.0, is_marked_wrong=True
        ),
        recorded(1, task="task_0", scores={"acc": 0.0}),
    ]


def judging(harness: GatewayHarness, scale: str, **judge: Any) -> None:
    run = running(tasks=1)
    run.order.judge.CopyFrom(run_pb2.Judge(run_id=JUDGED, prompt="correctness", scale=scale, **judge))
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)


@pytest.mark.usefixtures("judged")
async def test_an_answer_has_its_verdicts_with_reasons_and_whether_people_agree(
    harness: GatewayHarness,
) -> None:
    shown = (await show(harness, f"{PATH}?sort=-disagreement")).html
    asked = harness.results.outcomes_asked[-1]
    assert (asked.sort, asked.is_descending) == (results_pb2.OUTCOME_SORT_DISAGREEMENT, True)
    assert asked.includes_verdicts
    assert "&lt;b&gt;It&lt;/b&gt; agrees." in shown
    assert "people say otherwise" in shown
    assert "I cannot say." in shown
    assert f"/runs/{JUDGING[:-2]}8/results?from=7&amp;row=7.0" in shown
    assert '<option value="-disagreement" selected>disagreement first</option>' in shown
    for model, words in (("strict", "yes"), ("lenient", "unparsed")):
        label = f'<span class="muted">{model}</span> <span class="outcome">{words}</span>'
        assert re.search(f'title="p/{model}, correctness"> ?{label}', shown)


@pytest.mark.parametrize(
    ("judges", "labels"),
    [
        ([("p/a", "style")], [""]),
        ([("p/a", "style"), ("p/a", "safety")], ["style", "safety"]),
        ([("p/a", "style"), ("q/b", "style")], ["a", "b"]),
        ([("p/a", "style"), ("q/b", "style"), ("p/a", "safety")], ["a, style", "b, style", "a, safety"]),
    ],
)
async def test_verdicts_in_the_list_say_whose_they_are(
    harness: GatewayHarness, judges: Sequence[tuple[str, str]], labels: Sequence[str]
) -> None:
    run = running(tasks=1)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    said = [verdict("yes", "") for _ in judges]
    for number, (each, (model, prompt)) in enumerate(zip(said, judges, strict=True)):
        each.judge.run_id = f"{JUDGING[:-1]}{number}"
        each.judge.model, each.judge.prompt = model, prompt
    harness.results.outcomes[RUN_ID] = [recorded(0, task="task_0", scores={"acc": 1.0}, verdicts=said)]
    cell = (await show(harness, PATH)).html.partition('data-label="Verdicts"')[2].partition("</td>")[0]
    assert re.findall('<span class="muted">([^<]+)</span>', cell) == [label for label in labels if label]


async def test_a_run_without_judges_offers_no_order_of_them(harness: GatewayHarness) -> None:
    run = running(tasks=1)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run)
    harness.results.outcomes[RUN_ID] = [recorded(0, task="task_0", scores={"acc": 1.0})]
    shown = (await show(harness, PATH)).html
    assert "disagreement" not in shown
    assert "Verdicts" not in shown


@pytest.mark.usefixtures("judged")
async def test_an_order_of_no_answer_says_what_they_lack(harness: GatewayHarness) -> None:
    harness.results.outcomes[RUN_ID] = []
    shown = (await show(harness, f"{PATH}?sort=-disagreement")).html
    assert "No answer has a value to sort by: second opinion." in shown
    assert "No answer is recorded yet." not in shown


@pytest.mark.usefixtures("judged")
async def test_files_have_columns_for_each_judge(harness: GatewayHarness) -> None:
    lines = (await show(harness, f"{PATH}/export.jsonl")).html.splitlines()
    first, second = map(json.loads, lines)
    assert first["verdict p/strict:correctness"] == "yes"
    assert first["reason p/strict:correctness"] == "<b>It</b> agrees."
    assert first["verdict p/lenient:correctness"] == "unparsed"
    assert (first["disagreement"], second["disagreement"]) == (1.0, None)
    assert second["verdict p/strict:correctness"] is None
    [row, _] = csv.DictReader((await show(harness, f"{PATH}/export.csv")).html.splitlines())
    assert (row["verdict p/strict:correctness"], row["score_acc"]) == ("yes", "1.0")


@pytest.mark.usefixtures("judged")
async def test_rest_lists_verdicts_disagreement_first(harness: GatewayHarness) -> None:
    path = f"/api/v1/benchmarking/judgements/{RUN_ID}/verdicts?disagreement_first=true"
    status, body, _ = await call(harness, "GET", path)
    assert status == 200
    assert harness.results.outcomes_asked[-1].sort == results_pb2.OUTCOME_SORT_DISAGREEMENT
    [answer, other] = body["answers"]
    assert (answer["disagreement"], answer["is_marked_wrong"], other["verdicts"]) == (1.0, True, [])
    assert answer["verdicts"][0] == {
        "job_id": f"{JUDGING[:-2]}8",
        "model_id": "p/strict",
        "prompt": "correctness",
        "sample": 7,
        "rollout": 0,
        "status": "scored",
        "verdict": "yes",
        "score": 1.0,
        "reason": "<b>It</b> agrees.",
        "agrees_with_people": False,
        "place": None,
    }
    assert (answer["verdicts"][1]["verdict"], answer["verdicts"][1]["score"]) == (None, None)
    status, _, _ = await call(harness, "GET", path.replace(RUN_ID, "00000000-0000-0000-0000-000000000000"))
    assert status == 404


@pytest.mark.parametrize(
    ("scale", "stated", "words", "ends"),
    [
        ("yes-no", "no", "no", ["yes", "no"]),
        ("1-5", "4", "4 of 5", ["5 of 5", "1 of 5"]),
        ("labels:good=1,fair=0.5,poor=0", "fair", "fair", ["good", "poor"]),
        ("labels:good=1,fine=1,poor=0", "fine", "fine", ["poor"]),
        ("first-second-tie", "second", "second is better", ["won", "lost"]),
        ("first-second-tie", "tie", "tie", ["won", "lost"]),
    ],
)
async def test_a_verdict_is_neither_right_nor_wrong_on_the_page_of_its_run(
    harness: GatewayHarness, scale: str, stated: str, words: str, ends: list[str]
) -> None:
    judging(harness, scale, against_target=scale == PAIRS)
    harness.results.outcomes[RUN_ID] = [
        recorded(0, task="task_0", scores={"acc": 0.0}, prediction=stated, row_id="3.0.first", status=SCORED)
    ]
    shown = (await show(harness, PATH)).html
    assert f'<span class="outcome answered">{words}</span>' in shown
    assert "outcome wrong" not in shown
    named = [name for name in ("right", "wrong", *ends) if f"<span>{name}</span>" in shown]
    assert named == ends


async def test_a_mark_on_the_page_of_a_judge_says_that_it_is_of_the_verdict(harness: GatewayHarness) -> None:
    judging(harness, "yes-no")
    harness.results.outcomes[RUN_ID] = [
        recorded(0, task="task_0", scores={"acc": 0.0}, prediction="no", row_id="3.1", status=SCORED)
    ]
    shown = (await show(harness, PATH)).html
    assert "mark verdict golden" in shown
    assert f"/runs/{JUDGED}/results?from=3&amp;row=3.1" in shown
    headers = {"HX-Request": "true", "HX-Request-Type": "partial", "Origin": harness.http, **FORM}
    body = "sample=0&mark=wrong&subject=verdict"
    part = await show(harness, f"/runs/{RUN_ID}/marks", method="POST", body=body, headers=headers)
    assert "verdict marked wrong" in part.html
    assert "The verdict is marked as wrong." in part.headers["HX-Trigger"]
