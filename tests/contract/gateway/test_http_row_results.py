"""Answers to the rows of a data set over a socket: pages, what they hold, filters, files."""

import json

import aiohttp
import pytest

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from tests.fakes.gateway.dataset_runs import RECORDED_AT, recorded, shown_id, stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call

API = "/admin/benchmarks"


def completion_of(run: run_pb2.Run) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{shown_id(run).removeprefix('bm_')[:20]}{0:012x}",
        "object": "chat.completion",
        "created": RECORDED_AT,
        "model": "vllm/org/starter",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "answer 0", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 2,
            "total_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


async def test_answers_come_page_by_page_in_the_form_of_batch_lines(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    run.admitted_at.FromSeconds(1_700_000_000)
    run.finished_at.FromSeconds(1_700_000_010)
    harness.results.outcomes[run.run_id] = [recorded(number) for number in range(3)]
    path = f"{API}/{shown_id(run)}/results"
    status, body, _ = await call(harness, "GET", f"{path}?limit=2")
    assert status == 200
    assert (body["benchmark_id"], body["model_name"], body["dataset_name"], body["status"]) == (
        shown_id(run),
        "org/starter",
        "rows.jsonl",
        "completed",
    )
    assert (body["total_time_seconds"], body["throughput"], body["next_cursor"]) == (10.0, 0.0, "2")
    assert body["results"][0] == {
        "custom_id": "request-0",
        "response": {
            "status_code": 200,
            "body": completion_of(run),
        },
        "request": None,
        "error": None,
        "row": 0,
        "sample": 0,
        "rollout": 0,
        "status": "answered",
        "prompt": "One and one?",
        "target": "",
        "prediction": "",
        "scores": {},
        "is_golden": False,
        "is_marked_wrong": False,
        "verdicts": [],
        "disagreement": None,
        "total_seconds": 0.25,
    }
    _, body, _ = await call(harness, "GET", f"{path}?limit=2&cursor={body['next_cursor']}")
    assert ([row["custom_id"] for row in body["results"]], body["next_cursor"]) == (["request-2"], None)


async def test_whole_answers_failures_and_rows_without_an_id_keep_what_they_have(
    harness: GatewayHarness,
) -> None:
    run = stored_run(harness)
    run.order.metrics.add(name="exact_match")
    chat = {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "t"}]}}], "id": "x"}
    completion = {"choices": [{"text": "two", "logprobs": None}, {"text": "2"}]}
    answers = [
        outcome_pb2.Outcome(answer=outcome_pb2.Answer(text="", body_json=json.dumps(body)))
        for body in (chat, completion)
    ]
    timeout = outcome_pb2.Failure(failure_class=outcome_pb2.FAILURE_CLASS_TIMEOUT, message="No answer.")
    unscored = outcome_pb2.Failure(
        failure_class=outcome_pb2.FAILURE_CLASS_SCORING,
        message="Too slow.",
        answer=outcome_pb2.Answer(text="a"),
    )
    failed = outcome_pb2.OUTCOME_STATUS_FAILED
    harness.results.outcomes[run.run_id] = [
        recorded(0, outcome=answers[0], scores={"exact_match": 1.0}, target="two", is_golden=True),
        recorded(1, outcome=answers[1], row_id="", is_reused=True),
        recorded(2, outcome=outcome_pb2.Outcome(sample=2, failure=timeout), status=failed),
        recorded(3, outcome=outcome_pb2.Outcome(sample=3, failure=unscored), status=failed),
    ]
    _, body, _ = await call(harness, "GET", f"{API}/{shown_id(run)}/results")
    first, second, third, fourth = body["results"]
    assert (first["response"]["body"], first["status"], first["scores"]) == (
        chat,
        "scored",
        {"exact_match": 1.0},
    )
    assert (first["target"], first["is_golden"]) == ("two", True)
    assert [choice["message"]["content"] for choice in second["response"]["body"]["choices"]] == ["two", "2"]
    assert (second["custom_id"], second["total_seconds"]) == ("1", None)
    assert (third["response"], third["status"]) == (None, "failed")
    assert third["error"] == {"code": "timeout", "message": "No answer."}
    assert fourth["error"]["code"] == "scoring"
    assert fourth["response"]["body"]["choices"][0]["message"]["content"] == "a"


async def test_filters_reach_results_as_they_are(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    query = {
        "id": "r1",
        "text": "50%_é",
        "status": "answered",
        "metric": "rouge",
        "min_score": "0",
        "max_score": "0.5",
        "min_characters": "1",
        "max_characters": "9",
        "golden": "true",
        "sort": "time",
        "descending": "true",
    }
    assert (await call(harness, "GET", f"{API}/{shown_id(run)}/results", params=query))[0] == 200
    [asked] = harness.results.outcomes_asked
    assert asked.status == outcome_pb2.OUTCOME_STATUS_SCORED
    assert (asked.sort, asked.is_descending) == (results_pb2.OUTCOME_SORT_TIME, True)
    chosen = asked.filter
    assert (chosen.row_id, chosen.text, chosen.metric) == ("r1", "50%_é", "rouge")
    assert (chosen.HasField("min_score"), chosen.min_score, chosen.max_score) == (True, 0.0, 0.5)
    assert (chosen.min_characters, chosen.max_characters, chosen.is_golden) == (1, 9, True)
    await call(harness, "GET", f"{API}/{shown_id(run)}/results?wrong=true")
    assert harness.results.outcomes_asked[-1].filter.is_marked_wrong
    for wrong in (
        "min_score=nan",
        "min_characters=-1",
        "limit=1001",
        "status=lost",
        "sort=size",
        "nonsense=1",
    ):
        assert (await call(harness, "GET", f"{API}/{shown_id(run)}/results?{wrong}"))[0] == 422


@pytest.mark.parametrize("path", ["results?format=jsonl", "export?format=jsonl", "export"])
async def test_all_answers_come_as_a_file(harness: GatewayHarness, path: str) -> None:
    run = stored_run(harness)
    exports = harness.results.exports
    exports.pieces, exports.file_name, exports.media_type = [b'{"a":1}\n', b'{"a":2}\n'], "run.jsonl", "x/y"
    url = f"{harness.http}{API}/{shown_id(run)}/{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert (response.status, await response.read()) == (200, b'{"a":1}\n{"a":2}\n')
        assert response.headers["Content-Disposition"] == 'attachment; filename="run.jsonl"'
    [asked] = exports.asked
    assert (asked.run_id, asked.format) == (run.run_id, export_pb2.EXPORT_FORMAT_JSONL)


async def test_file_of_chosen_answers_is_refused_and_not_mistaken_for_all(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    for query in ("status=failed", "id=r1", "cursor=2", "golden=true"):
        path = f"{API}/{shown_id(run)}/results?format=csv&{query}"
        status, body, _ = await call(harness, "GET", path)
        assert (status, body["detail"][:37]) == (422, "A file has all answers of the run: le")
    assert not harness.results.exports.asked
