"""Answers side by side, marked and exported over a socket: a real gateway, fake backends."""

import json
from typing import Any

import aiohttp
import pytest

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2
from services.common.errors import ErrorKind
from services.common.grpc.client import open_channel
from tests.fakes.gateway.dataset_runs import recorded, shown_id, stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call
from tests.fakes.refusals import refused

API = "/admin/benchmarks"


def shown_row(number: int, *answers: outcome_pb2.RecordedOutcome | None) -> answer_pb2.SideBySideRow:
    beside = [answer_pb2.SideBySideAnswer(outcome=answer) for answer in answers]
    return answer_pb2.SideBySideRow(
        row_id=f"r{number}", doc_id=number, prompt="Why?", target="so", answers=beside, is_differing=True
    )


async def test_rows_stand_side_by_side_page_by_page(harness: GatewayHarness) -> None:
    first, second = stored_run(harness), stored_run(harness)
    failure = outcome_pb2.Failure(
        failure_class=outcome_pb2.FAILURE_CLASS_TIMEOUT, message="It took too long."
    )
    failed = recorded(
        0,
        outcome=outcome_pb2.Outcome(failure=failure),
        status=outcome_pb2.OUTCOME_STATUS_FAILED,
        is_golden=False,
    )
    harness.results.answers.rows = [shown_row(at, recorded(at, is_golden=True), failed) for at in range(3)]
    ids = f"{shown_id(first)},{shown_id(second)}"
    words = "differing=true&limit=2&text=a%25b&min_score=0.5&max_characters=9&golden=true"
    status, body, _ = await call(harness, "GET", f"{API}/side-by-side?ids={ids}&{words}")
    assert status == 200
    assert [one["benchmark_id"] for one in body["benchmarks"]] == ids.split(",")
    assert body["benchmarks"][0]["model_id"] == "vllm/org/starter"
    assert (len(body["rows"]), body["next_cursor"]) == (2, "2")
    row = body["rows"][1]
    assert (row["custom_id"], row["row"], row["prompt"], row["target"], row["is_differing"]) == (
        "r1",
        1,
        "Why?",
        "so",
        True,
    )
    assert row["answers"][0] == {
        "sample": 1,
        "rollout": 0,
        "status": "answered",
        "text": "answer 1",
        "reasoning": "",
        "finish_reason": "stop",
        "prediction": "",
        "body": None,
        "error": None,
        "scores": {},
        "is_golden": True,
        "is_marked_wrong": False,
        "total_seconds": 0.25,
    }
    assert row["answers"][1]["error"] == {"code": "timeout", "message": "It took too long."}
    [asked] = harness.results.answers.listed
    assert list(asked.run_ids) == [first.run_id, second.run_id]
    assert (asked.only_differing, asked.page_size, asked.filter.text) == (True, 2, "a%b")
    assert (asked.filter.min_score, asked.filter.max_characters, asked.filter.is_golden) == (0.5, 9, True)
    _, body, _ = await call(harness, "GET", f"{API}/side-by-side?ids={ids}&cursor=2")
    assert (len(body["rows"]), body["next_cursor"]) == (1, None)
    assert not harness.results.answers.listed[1].HasField("filter")


async def test_an_answer_that_is_not_there_is_null(harness: GatewayHarness) -> None:
    first, second = stored_run(harness), stored_run(harness)
    row = shown_row(0, recorded(0))
    row.answers.add()
    harness.results.answers.rows = [row]
    _, body, _ = await call(harness, "GET", f"{API}/side-by-side?ids={shown_id(first)},{shown_id(second)}")
    assert body["rows"][0]["answers"][1] is None


async def test_what_cannot_be_shown_is_said_in_a_sentence(harness: GatewayHarness) -> None:
    first, second = stored_run(harness), stored_run(harness)
    ids = f"{shown_id(first)},{shown_id(second)}"

    async def refusal(path: str) -> tuple[int, str]:
        status, body, _ = await call(harness, "GET", f"{API}/{path}")
        return status, body["reason"]

    assert await refusal(f"side-by-side?ids={ids},bm_{32 * '0'}") == (404, "RUN_NOT_FOUND")
    assert await refusal("side-by-side?ids=nonsense") == (404, "RUN_NOT_FOUND")
    assert await refusal("side-by-side") == (422, "INVALID_PARAMETER")
    assert await refusal(f"side-by-side?ids={ids}&status=failed") == (422, "INVALID_PARAMETER")
    assert await refusal(f"side-by-side?ids={ids}&limit=201") == (422, "INVALID_PARAMETER")
    assert await refusal(f"golden/export?ids={ids}") == (422, "INVALID_PARAMETER")
    assert not harness.results.answers.listed
    harness.results.answers.refusal = refused(
        ErrorKind.NOT_FOUND, "RUN_NOT_FOUND", "Run not found.", run_id=second.run_id
    )
    status, body, _ = await call(harness, "GET", f"{API}/side-by-side?ids={ids}")
    assert (status, body["reason"]) == (409, "RUN_NOT_PLANNED")
    assert body["detail"].startswith(f"Run {shown_id(second)} has not begun")
    harness.results.answers.refusal = refused(ErrorKind.CONFLICT, "NO_COMMON_SAMPLES", "Nothing to pair.")
    assert await refusal(f"side-by-side?ids={ids}") == (409, "NO_COMMON_SAMPLES")


async def test_an_empty_id_is_reported_as_such(harness: GatewayHarness) -> None:
    ids = f"{shown_id(stored_run(harness))},"
    for path in (f"side-by-side?ids={ids}", f"golden/export?ids={ids}&form=test", "side-by-side?ids="):
        status, body, _ = await call(harness, "GET", f"{API}/{path}")
        assert status == 422
        assert body["detail"].startswith("ids has an empty id in it: ")


@pytest.mark.parametrize(
    ("field", "problem", "detail"),
    [
        ("filter.text", "must not contain a NUL", "text must not contain a NUL."),
        ("filter.row_id", "must not contain a NUL", "id must not contain a NUL."),
        ("run_ids", "must be 2 to 6 different runs", "ids must be 2 to 6 different runs."),
        (
            "min_characters",
            "(5) must not be above max_characters (3)",
            "min_characters (5) must not be above max_characters (3).",
        ),
        ("answers.row_id", "must not contain a NUL", "custom_id must not contain a NUL."),
        ("row_id", "names a row only here", "custom_id names a row only here."),
    ],
)
async def test_fields_are_named_as_the_caller_wrote_them(
    harness: GatewayHarness, field: str, problem: str, detail: str
) -> None:
    first, second = shown_id(stored_run(harness)), shown_id(stored_run(harness))
    refusal = f"{field} {problem}."
    fault = refused(ErrorKind.INVALID, "INVALID_PARAMETER", refusal, field=field, problem=problem)
    harness.results.answers.refusal = harness.results.exports.refusal = harness.results.outcomes_refusal = (
        fault
    )
    marks = {"answers": [{"custom_id": "a"}]}
    for method, path, body in (
        ("GET", f"side-by-side?ids={first},{second}", None),
        ("GET", f"golden/export?ids={first}&form=test", None),
        ("GET", f"{first}/results?text=a", None),
        ("PUT", f"{first}/golden", marks),
        ("DELETE", f"{first}/golden", marks),
        ("PUT", f"{first}/wrong", marks),
    ):
        status, reported, _ = await call(harness, method, f"{API}/{path}", json=body)
        assert (status, reported["detail"]) == (422, detail), path


async def test_answers_are_marked_by_number_or_id_in_the_name_of_who_does(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    path = f"{API}/{shown_id(run)}/golden"
    named: dict[str, Any] = {"answers": [{"sample": 0, "rollout": 2}, {"custom_id": "é-1"}]}
    status, body, _ = await call(harness, "PUT", path, json=named, headers={"X-Proctor-User": "ann"})
    assert (status, body) == (200, {"benchmark_id": shown_id(run), "golden_count": 2, "wrong_count": 0})
    status, _, _ = await call(harness, "DELETE", path, json={"answers": [{"sample": 7}]})
    assert status == 200
    status, body, _ = await call(harness, "PUT", f"{API}/{shown_id(run)}/wrong", json=named)
    assert (status, body) == (200, {"benchmark_id": shown_id(run), "golden_count": 0, "wrong_count": 2})
    marked, unmarked, wrong = harness.results.answers.marked
    keys = [answer_pb2.AnswerKey(sample=0, rollout=2), answer_pb2.AnswerKey(row_id="é-1")]
    assert list(marked.answers) == keys
    assert (marked.run_id, marked.is_golden, marked.user) == (run.run_id, True, "ann")
    assert (unmarked.is_golden, unmarked.is_marked_wrong, unmarked.user) == (False, False, "local")
    assert (list(wrong.answers), wrong.is_golden, wrong.is_marked_wrong) == (keys, False, True)


async def test_changes_of_marks_are_listed_by_pages(harness: GatewayHarness) -> None:
    changes = [answer_pb2.MarkChange(sample=at, is_golden=at > 0, user="ann") for at in range(3)]
    for change in changes:
        change.changed_at.FromSeconds(1_700_000_000)
    harness.results.answers.changes = changes
    path = f"{API}/{shown_id(stored_run(harness))}/golden/changes?limit=2"
    status, first, _ = await call(harness, "GET", path)
    assert status == 200
    assert first["changes"][0] == {
        "sample": 0,
        "rollout": 0,
        "is_golden": False,
        "is_marked_wrong": False,
        "user": "ann",
        "changed_at": "2023-11-14T22:13:20Z",
    }
    status, last, _ = await call(harness, "GET", f"{path}&cursor={first['next_cursor']}")
    assert ([change["sample"] for change in last["changes"]], last["next_cursor"]) == ([2], None)


@pytest.mark.parametrize(
    "answers",
    [
        [{}],
        [{"sample": 0, "custom_id": "a"}],
        [{"sample": -1}],
        [{"sample": 0, "rollout": -1}],
        [{"sample": 0, "more": 1}],
        [{"sample": at} for at in range(1001)],
        None,
    ],
)
async def test_marks_that_name_no_answer_are_refused(harness: GatewayHarness, answers: Any) -> None:
    path = f"{API}/{shown_id(stored_run(harness))}/golden"
    status, body, _ = await call(harness, "PUT", path, json={"answers": answers})
    assert (status, body["reason"]) == (422, "INVALID_PARAMETER")
    assert not harness.results.answers.marked


async def test_golden_answers_come_as_a_file_or_as_a_sentence(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    harness.results.exports.pieces = [b'{"id": "a"}\n', b'{"id": "b"}\n']
    url = f"{harness.http}{API}/golden/export?ids={shown_id(run)}&form=test"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        assert response.headers["Content-Disposition"] == 'attachment; filename="golden_test.jsonl"'
        assert [json.loads(line)["id"] for line in (await response.text()).splitlines()] == ["a", "b"]
    [asked] = harness.results.exports.golden_asked
    assert asked == export_pb2.ExportGoldenAnswersRequest(
        run_ids=[run.run_id], form=export_pb2.GOLDEN_FORM_TEST
    )
    harness.results.exports.refusal = refused(ErrorKind.CONFLICT, "NO_GOLDEN_ANSWERS", "Mark some first.")
    status, body, _ = await call(harness, "GET", f"{API}/golden/export?ids={shown_id(run)}&form=training")
    assert (status, body["detail"]) == (409, "Mark some first.")


async def test_marks_over_grpc_are_of_who_calls(harness: GatewayHarness) -> None:
    async with open_channel(harness.grpc) as channel:
        stub: answer_grpc.AnswerServiceAsyncStub = answer_grpc.AnswerServiceStub(channel)
        await stub.MarkAnswers(
            answer_pb2.MarkAnswersRequest(run_id="r", user="eve"), metadata=(("x-proctor-user", "ann"),)
        )
    [marked] = harness.results.answers.marked
    assert marked.user == "ann"


async def test_reads_beyond_what_results_allows_are_503_and_asked_once(harness: GatewayHarness) -> None:
    """A transport that tries again by itself multiplies what is too much already."""
    path = f"{API}/{shown_id(stored_run(harness))}/results"
    harness.results.outcomes_refusal = refused(
        ErrorKind.UNAVAILABLE, "TOO_MANY_READS", "Too many read at once.", retry_after_seconds="7"
    )
    status, body, response = await call(harness, "GET", path)
    assert (status, body["retry_after"], response.headers["Retry-After"]) == (503, 7, "7")
    assert len(harness.results.outcomes_asked) == 1
