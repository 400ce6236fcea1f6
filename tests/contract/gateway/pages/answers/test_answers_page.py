"""The answers of a run on a page: filters and addresses, pages, the chosen answer, hostile text."""

import csv
import io
import json
import re
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pyarrow.parquet as pq
import pytest

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, run_pb2
from services.common.errors import ErrorKind
from services.gateway.pages.problems import CONTENT_SECURITY_POLICY
from tests.contract.gateway.pages.shown_pages import HOSTILE, RUN_ID, Shown, running, show, summary_of
from tests.fakes.gateway.dataset_runs import recorded
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.refusals import refused

RESULTS = f"/runs/{RUN_ID}/results"
PART = {"HX-Request": "true", "HX-Request-Type": "partial"}


@pytest.fixture(autouse=True)
def run(harness: GatewayHarness) -> run_pb2.Run:
    run = running(tasks=2)
    harness.scheduler.put(run)
    harness.results.summaries[RUN_ID] = summary_of(run, failed=92, unparsed=3)
    harness.results.outcomes[RUN_ID] = [
        recorded(number, task="task_0", scores={"acc": float(number % 2)}, target=f"target {number}")
        for number in range(120)
    ]
    return run


def with_outcomes(harness: GatewayHarness, *outcomes: outcome_pb2.RecordedOutcome) -> None:
    harness.results.outcomes[RUN_ID] = list(outcomes)


def links(shown: Shown) -> list[str]:
    return [attributes.get("href") or "" for tag, attributes in shown.elements if tag == "a"]


async def test_page_has_its_rows_with_their_outcomes_and_files(harness: GatewayHarness) -> None:
    shown = await show(harness, RESULTS)
    assert shown.status == 200
    assert shown.html.count('class="outcome right"') == 25
    # The first one is open beside the list too.
    assert shown.html.count('class="outcome wrong"') == 25 + 1
    assert "answer 49" in shown.html
    assert "answer 50" not in shown.html
    assert {f"{RESULTS}/export.csv", f"{RESULTS}/export.jsonl", f"/runs/{RUN_ID}"} <= set(links(shown))


async def test_first_answer_is_open_until_another_is_chosen(harness: GatewayHarness) -> None:
    shown = await show(harness, RESULTS)
    assert "data-unasked" in shown.html
    assert ">target 0</pre>" in shown.html
    assert "data-unasked" not in (await show(harness, f"{RESULTS}?row=7.0")).html
    assert "Choose a row to see it in full." in (await show(harness, f"{RESULTS}?row=none")).html
    closed = await show(harness, RESULTS, headers=PART | {"HX-Target": "section#detail"})
    assert "Choose a row to see it in full." in closed.html


async def test_file_has_all_answers_that_match(harness: GatewayHarness) -> None:
    harness.results.outcomes[RUN_ID] = [
        recorded(number, task="task_0", scores={"acc": 1.0}, target='a "target"') for number in range(1200)
    ]
    path = f"{RESULTS}/export.jsonl?status=right&text=answer&row=3.0&after=50"
    rows = [json.loads(line) for line in (await show(harness, path)).html.splitlines()]
    assert [row["sample"] for row in rows] == list(range(1200))
    assert (rows[7]["answer"], rows[7]["target"], rows[7]["score_acc"]) == ("answer 7", 'a "target"', 1.0)
    asked = harness.results.outcomes_asked
    assert {(each.filter.text, each.filter.min_score) for each in asked} == {("answer", 1.0)}
    table = await show(harness, f"{RESULTS}/export.csv?status=right")
    assert len(list(csv.DictReader(table.html.splitlines()))) == 1200
    assert table.headers["Content-Disposition"] == 'attachment; filename="answers_8f3c2a10.csv"'
    url = f"{harness.http}{RESULTS}/export.parquet?status=right"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        parquet = pq.read_table(io.BytesIO(await response.read()))
    assert (parquet.num_rows, str(parquet.schema.field("score_acc").type)) == (1200, "double")


async def test_file_of_a_search_goes_on_after_a_page_without_a_match(harness: GatewayHarness) -> None:
    del harness.results.outcomes[RUN_ID]
    assert (await show(harness, f"{RESULTS}/export.jsonl?text=rare")).html == ""
    assert [each.page_token for each in harness.results.outcomes_asked] == ["", "after "]


async def test_filter_that_the_run_refuses_makes_no_file(harness: GatewayHarness) -> None:
    harness.results.outcomes_refusal = refused(ErrorKind.INVALID, "INVALID_PARAMETER", "No such task.")
    assert (await show(harness, f"{RESULTS}/export.csv?task=x")).status == 422


async def test_golden_answers_are_chats_for_training(harness: GatewayHarness) -> None:
    harness.results.exports.pieces = [b'{"messages": []}\n']
    assert f"{RESULTS}/golden.jsonl" in links(await show(harness, f"{RESULTS}?marked=golden"))
    assert (await show(harness, f"{RESULTS}/golden.jsonl")).html == '{"messages": []}\n'
    [asked] = harness.results.exports.golden_asked
    assert ([*asked.run_ids], asked.form) == ([RUN_ID], export_pb2.GOLDEN_FORM_TRAINING)


async def test_links_lead_through_all_pages_and_keep_the_filters(harness: GatewayHarness) -> None:
    seen, path = 0, f"{RESULTS}?task=task_0&text=answer"
    last = ""
    while path:
        shown = await show(harness, path)
        last = shown.html
        seen += shown.html.count('<td><span class="outcome ')
        following = [a for tag, a in shown.elements if tag == "a" and a.get("rel") == "next"]
        path = (following[0]["href"] or "") if following else ""
        if path:
            assert {"task": ["task_0"], "text": ["answer"]}.items() <= parse_qs(urlsplit(path).query).items()
    assert seen == 120
    assert f"{RESULTS}?task=task_0&amp;text=answer" in last


async def test_file_of_lm_eval_is_offered_for_one_task_of_a_suite(
    harness: GatewayHarness, run: run_pb2.Run
) -> None:
    file = f"/api/v1/benchmarking/results/{RUN_ID}/export?format=lm_eval&task=task_1"
    assert file not in links(await show(harness, RESULTS))
    assert file in links(await show(harness, f"{RESULTS}?task=task_1"))
    run.order.dataset_id = "ds_0123456789abcdef"
    harness.scheduler.put(run)
    assert file not in links(await show(harness, f"{RESULTS}?task=task_1"))


@pytest.mark.parametrize("status", ["scored", "unparsed", "failed"])
async def test_links_of_a_run_filter_by_status(harness: GatewayHarness, status: str) -> None:
    shown = await show(harness, f"{RESULTS}?status={status}")
    [asked] = harness.results.outcomes_asked
    assert asked.status == outcome_pb2.OutcomeStatus.Value(f"OUTCOME_STATUS_{status.upper()}")
    assert not asked.HasField("filter")
    checked = [a["value"] for tag, a in shown.elements if tag == "input" and "checked" in a]
    assert checked == [status]


async def test_every_filter_reaches_results_and_its_field(harness: GatewayHarness) -> None:
    given = {
        "task": "task_1",
        "row_id": "request-1",
        "text": "50 % & more",
        "metric": "acc",
        "min_score": "0.25",
        "max_score": "0.75",
        "min_characters": "3",
        "max_characters": "900",
        "marked": "golden",
    }
    shown = await show(harness, f"{RESULTS}?{urlencode(given)}")
    [asked] = harness.results.outcomes_asked
    chosen = asked.filter
    assert (asked.task, chosen.row_id, chosen.text, chosen.metric) == (
        "task_1",
        "request-1",
        "50 % & more",
        "acc",
    )
    assert (chosen.min_score, chosen.max_score, chosen.is_golden) == (0.25, 0.75, True)
    assert (chosen.min_characters, chosen.max_characters) == (3, 900)
    fields = {
        a["name"]: a.get("value")
        for tag, a in shown.elements
        if tag == "input" and a.get("name") in given and (a.get("type") != "checkbox" or "checked" in a)
    }
    assert fields == {name: given[name] for name in given if name not in {"task", "metric", "marked"}}
    selected = [a["value"] for tag, a in shown.elements if tag == "option" and "selected" in a]
    assert [value for value in selected if value] == ["task_1", "acc", "golden"]


@pytest.mark.parametrize(("word", "score"), [("right", 1.0), ("wrong", 0.0)])
async def test_right_and_wrong_are_scores(harness: GatewayHarness, word: str, score: float) -> None:
    await show(harness, f"{RESULTS}?status={word}")
    chosen = harness.results.outcomes_asked[0].filter
    assert (chosen.HasField("min_score"), chosen.HasField("max_score")) == (True, True)
    assert (chosen.min_score, chosen.max_score) == (score, score)


async def test_values_that_cannot_be_read_and_unknown_names_are_ignored(harness: GatewayHarness) -> None:
    odd = "status=lost&min_score=nan&max_score=x&min_characters=-1&max_characters=%C2%B2&marked=maybe"
    shown = await show(harness, f"{RESULTS}?{odd}&colour=red")
    assert shown.status == 200
    [asked] = harness.results.outcomes_asked
    assert (asked.status, asked.HasField("filter")) == (0, False)


async def test_filter_that_the_run_refuses_is_said_at_the_list(harness: GatewayHarness) -> None:
    sentence = "No metric 'bleu' here. Supported: acc."
    harness.results.outcomes_refusal = refused(ErrorKind.INVALID, "UNKNOWN_METRIC", sentence)
    shown = await show(harness, f"{RESULTS}?metric=bleu&after=nonsense")
    assert shown.status == 422
    assert "No metric &#39;bleu&#39; here." in shown.html
    assert {RESULTS, f"{RESULTS}?metric=bleu"} <= set(links(shown))
    selected = [a["value"] for tag, a in shown.elements if tag == "option" and "selected" in a]
    assert [value for value in selected if value] == ["bleu"]


async def test_address_with_a_row_shows_it_in_full(harness: GatewayHarness) -> None:
    long = "\n\n".join(["An example."] * 400 + ["What is asked"])
    with_outcomes(harness, recorded(7, prompt=long, scores={"acc": 1.0}, target="expected"))
    shown = await show(harness, f"{RESULTS}?row=7.0")
    assert shown.html.count("An example.") == 400
    assert 'aria-selected="true"' in shown.html
    assert "expected" in shown.html
    [row] = re.findall(r'<tr id="row-.*?</tr>', shown.html)
    assert "What is asked" in row
    assert "An example." not in row


async def test_row_that_is_not_on_the_page_is_said_to_be_elsewhere(harness: GatewayHarness) -> None:
    for row in ("999.0", "nonsense", '"><b>'):
        shown = await show(harness, f"{RESULTS}?{urlencode({'row': row})}")
        assert shown.status == 200
        assert "not on this page of the list" in shown.html


async def test_parts_have_the_address_of_what_they_show(harness: GatewayHarness) -> None:
    listed = await show(harness, f"{RESULTS}?status=failed&text=", headers={**PART, "HX-Target": "div#found"})
    assert listed.headers["HX-Push-Url"] == f"{RESULTS}?status=failed"
    detail = await show(
        harness, f"{RESULTS}?after=50&row=51.0", headers={**PART, "HX-Target": "section#detail"}
    )
    assert detail.headers["HX-Replace-Url"] == f"{RESULTS}?after=50&row=51.0"
    assert "HX-Push-Url" not in detail.headers
    assert "answer 51" in detail.html
    assert "<table" not in detail.html
    assert "<html" not in listed.html + detail.html


async def test_failure_has_its_class_and_reason(harness: GatewayHarness) -> None:
    failure = outcome_pb2.Failure(
        failure_class=outcome_pb2.FAILURE_CLASS_RATE_LIMIT, message="The provider answered 429."
    )
    with_outcomes(
        harness,
        recorded(
            0,
            outcome=outcome_pb2.Outcome(sample=0, failure=failure),
            status=outcome_pb2.OUTCOME_STATUS_FAILED,
        ),
        recorded(1, status=outcome_pb2.OUTCOME_STATUS_UNPARSED),
        recorded(2, is_marked_wrong=True),
        recorded(3, scores={"f1": 0.5}, is_golden=True),
    )
    shown = await show(harness, f"{RESULTS}?row=0.0")
    for word in ("rate limit", "unparsed", "answered", "50.0"):
        assert f">{word}</span>" in shown.html
    assert shown.html.count("The provider answered 429.") == 2
    assert "★" in shown.html
    assert "marked as wrong" in shown.html


async def test_choices_have_their_log_likelihoods(harness: GatewayHarness) -> None:
    answer = outcome_pb2.Answer()
    answer.choices.add(logprob=-1.25, is_greedy=True)
    answer.choices.add(logprob=-3.5)
    outcome = outcome_pb2.Outcome(sample=0, answer=answer)
    with_outcomes(harness, recorded(0, outcome=outcome, choices=[" yes", " no"], prediction=" yes"))
    shown = await show(harness, f"{RESULTS}?row=0.0")
    assert "\u22121.25" in shown.html
    assert "\u22123.5" in shown.html
    assert "greedy" in shown.html


async def test_hostile_answers_are_text(harness: GatewayHarness) -> None:
    answer = outcome_pb2.Answer(text=HOSTILE, finish_reason=HOSTILE, body_json=HOSTILE)
    answer.choices.add(logprob=-1)
    failure = outcome_pb2.Failure(
        failure_class=outcome_pb2.FAILURE_CLASS_SCORING, message=HOSTILE, answer=answer
    )
    texts = {
        "prompt": HOSTILE,
        "target": HOSTILE,
        "prediction": f"{HOSTILE}!",
        "row_id": HOSTILE,
        "task": HOSTILE,
        "choices": [HOSTILE],
        "scores": {HOSTILE: 0.5},
    }
    with_outcomes(
        harness,
        recorded(0, outcome=outcome_pb2.Outcome(sample=0, answer=answer), **texts),
        recorded(
            1,
            outcome=outcome_pb2.Outcome(sample=1, failure=failure),
            status=outcome_pb2.OUTCOME_STATUS_FAILED,
            **texts,
        ),
    )
    summary = harness.results.summaries[RUN_ID]
    summary.tasks[0].task = summary.tasks[0].metrics[0].metric = HOSTILE
    given = urlencode({"text": HOSTILE, "row_id": HOSTILE, "task": HOSTILE, "metric": HOSTILE})
    for row in ("0.0", "1.0"):
        shown = await show(harness, f"{RESULTS}?{given}&row={row}")
        assert shown.status == 200
        assert "img" not in [tag for tag, _ in shown.elements]
        assert not any(name.startswith("on") for _, attributes in shown.elements for name in attributes)
        assert not any(a.get("hx-get") == "/x" for _, a in shown.elements)
        # What the reader typed goes back into its fields and links as it was.
        assert "\u27e8U+202E\u27e9gnp.exe\u27e8U+200B\u27e9" in shown.html
        assert "\u202e" not in re.sub(r'"[^"]*"', "", shown.html)
        assert CONTENT_SECURITY_POLICY in shown.headers.getall("Content-Security-Policy")


async def test_empty_lists_say_why_and_lead_on(harness: GatewayHarness) -> None:
    with_outcomes(harness)
    harness.results.summaries[RUN_ID].Clear()
    assert "No answer is recorded yet." in (empty := await show(harness, RESULTS)).html
    assert "export.csv" not in empty.html
    filtered = await show(harness, f"{RESULTS}?text=nowhere")
    assert "No answer matches" in filtered.html
    assert RESULTS in links(filtered)
    # A page without a match need not be the last.
    del harness.results.outcomes[RUN_ID]
    further = await show(harness, f"{RESULTS}?text=rare")
    assert "No match yet." in further.html
    assert f'hx-get="{RESULTS}?text=rare&amp;after=after+&amp;on=1"' in further.html
    assert 'hx-trigger="load"' in further.html
    assert f"{RESULTS}?text=rare&after=after+" in links(further)


@pytest.mark.parametrize("path", [f"/runs/{RUN_ID[:-1]}9/results", "/runs/nonsense/results"])
async def test_unknown_run_is_not_found(harness: GatewayHarness, path: str) -> None:
    shown = await show(harness, path)
    assert (shown.status, "Not found" in shown.html) == (404, True)


async def test_results_that_are_away_are_an_error_not_an_empty_list(harness: GatewayHarness) -> None:
    sentence = "Results cannot be reached. Try again in 3 s."
    harness.results.outcomes_refusal = refused(
        ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", sentence, retry_after_seconds="3"
    )
    assert (await show(harness, RESULTS)).status == 503


async def test_page_of_long_answers_stays_light(harness: GatewayHarness) -> None:
    with_outcomes(harness, *(recorded(at, prompt="q " * 50_000, target="t" * 50_000) for at in range(50)))
    shown = await show(harness, f"{RESULTS}?row=0.0")
    assert len(shown.html) < 150_000
    assert "more characters)" in shown.html


async def test_run_leads_to_its_answers_and_its_data_set(harness: GatewayHarness, run: run_pb2.Run) -> None:
    run.order.suite, run.order.dataset_id, run.dataset_name = "", "ds_0123456789abcdef", "rows.jsonl"
    for state in (run_pb2.RUN_STATE_RUNNING, run_pb2.RUN_STATE_COMPLETED):
        run.state = state
        harness.scheduler.put(run)
        shown = await show(harness, f"/runs/{RUN_ID}")
        found = links(shown)
        assert {RESULTS, f"{RESULTS}?status=failed&failure=timeout"} <= set(found)
        assert "/datasets/ds_0123456789abcdef" in found
        assert "rows.jsonl" in shown.html
        assert (f"{RESULTS}?task=task_1" in found) == (state == run_pb2.RUN_STATE_COMPLETED)
        for link in found:
            if link.startswith(RESULTS):
                assert (await show(harness, link)).status == 200


async def test_reasoning_stands_apart_from_the_answer(harness: GatewayHarness) -> None:
    answered = outcome_pb2.Answer(text="Bergen", finish_reason="stop", reasoning="Perhaps Oslo?")
    unended = outcome_pb2.Answer(finish_reason="length", reasoning="Perhaps Oslo?")
    usage = outcome_pb2.TokenUsage(completion_tokens=9, reasoning_tokens=7)
    with_outcomes(
        harness,
        recorded(0, outcome=outcome_pb2.Outcome(sample=0, answer=answered, usage=usage)),
        recorded(
            1,
            outcome=outcome_pb2.Outcome(sample=1, answer=unended),
            status=outcome_pb2.OUTCOME_STATUS_UNPARSED,
        ),
    )
    whole = (await show(harness, f"{RESULTS}?row=0.0")).html
    assert re.search(r"<details><summary>Reasoning</summary><pre[^>]*>Perhaps Oslo\?</pre></details>", whole)
    assert re.search(r"<h3>Answer</h3><pre[^>]*>Bergen</pre>", whole)
    assert "9 completion, 7 reasoning" in whole
    cut = (await show(harness, f"{RESULTS}?row=1.0")).html
    assert re.search(r"<details open><summary>Reasoning</summary><pre[^>]*>Perhaps Oslo\?</pre>", cut)
    assert cut.count("nothing but reasoning, ended by length") == 2
