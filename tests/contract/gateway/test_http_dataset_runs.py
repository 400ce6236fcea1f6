"""Runs over data sets over a socket: orders, lists, figures, answers, files; a gateway, fake backends."""

import uuid
from typing import Any

import pytest

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.dataset_runs import DATASET, shown_id, stored_run
from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.gateway.http_calls import call
from tests.fakes.refusals import refused

API = "/admin/benchmarks"
ORDER: dict[str, Any] = {"model_id": "vllm/starter", "dataset_id": DATASET}


async def test_order_is_answered_with_id_state_and_time(harness: GatewayHarness) -> None:
    harness.scheduler.estimated_seconds = 90.0
    status, body, _ = await call(harness, "POST", f"{API}/run", json=ORDER)
    assert status == 200
    [run] = harness.scheduler.runs.values()
    assert body == {
        "benchmark_id": shown_id(run),
        "status": "pending",
        "started_at": "2023-11-14T22:13:20Z",
        "model_id": "vllm/starter",
        "dataset_id": DATASET,
        "dataset_name": "",
        "deadline": None,
        "estimated_duration": "1-2 minutes",
        "estimated_seconds": 90.0,
        "estimated_cost": None,
        "currency": None,
    }
    [submitted] = harness.scheduler.submitted
    assert submitted.order == run_pb2.RunOrder(
        dataset_id=DATASET,
        model="vllm/starter",
        truncation=run_pb2.TRUNCATION_NONE,
        reasoning=run_pb2.REASONING_SEPARATE,
    )
    assert (submitted.user, len(submitted.request_id)) == ("local", 36)


async def test_every_word_of_an_order_reaches_the_scheduler(harness: GatewayHarness) -> None:
    key = str(uuid.uuid4())
    order = {
        **ORDER,
        "metrics": ["exact_match", {"name": "regex", "options": {"pattern": "^é", "ignore_case": True}}],
        "params": {"temperature": 0.5, "max_tokens": 7, "min_p": 0.1},
        "limit": 3,
        "rollouts": 2,
        "priority": "low",
        "project_id": 9,
        "line_models": ["gpt-4o"],
        "completion_window": "24h",
        "reuse_answers": True,
        "stream_answers": True,
        "max_cost": 1.5,
        "prompt_form": "chat",
        "base_url": "http://inside/v1",
    }
    headers = {"Idempotency-Key": key, "X-Proctor-User": "bob"}
    status, _, _ = await call(harness, "POST", f"{API}/run", json=order, headers=headers)
    assert status == 200
    [submitted] = harness.scheduler.submitted
    assert (submitted.user, submitted.request_id) == ("bob", key)
    sent = submitted.order
    assert [(metric.name, metric.options_json) for metric in sent.metrics] == [
        ("exact_match", ""),
        ("regex", '{"pattern": "^é", "ignore_case": true}'),
    ]
    assert (sent.params.temperature, sent.params.max_tokens) == (0.5, 7)
    assert dict(sent.params.provider_params) == {"min_p": 0.1}
    assert (sent.limit, sent.rollouts, sent.priority) == (3, 2, run_pb2.PRIORITY_LOW)
    assert (sent.project_id, list(sent.line_models)) == (9, ["gpt-4o"])
    assert (sent.completion_window_seconds, sent.max_cost) == (86_400, 1.5)
    assert (sent.reuse_answers, sent.stream_answers) == (True, True)
    assert (sent.prompt_form, sent.base_url) == (run_pb2.PROMPT_FORM_CHAT, "http://inside/v1")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"suite": "glue"}, "suite"),
        ({"model_id": ""}, "model_id"),
        ({"dataset_id": "\ud800"}, "dataset_id"),
        ({"limit": 0}, "limit"),
        ({"completion_window": "a day"}, "completion_window"),
        ({"completion_window": "0h"}, "completion_window"),
        ({"params": {"temperature": 3}}, "params.temperature"),
        ({"priority": "urgent"}, "priority"),
        ({"metrics": [""]}, "metrics.0.name"),
        ({"metrics": ["f1", 1]}, "metrics.1"),
        ({"metrics": [{"name": "f1", "option": {}}]}, "metrics.0.option"),
        ({"metrics": [{"name": "f1", "options": []}]}, "metrics.0.options"),
    ],
)
async def test_order_that_cannot_be_read_is_422_and_orders_nothing(
    harness: GatewayHarness, change: dict[str, Any], field: str
) -> None:
    status, body, _ = await call(harness, "POST", f"{API}/run", json=ORDER | change)
    assert (status, [error["field"] for error in body["errors"]]) == (422, [field])
    assert not harness.scheduler.submitted


async def test_order_that_is_no_json_is_reported_where_it_breaks_off(harness: GatewayHarness) -> None:
    headers = {"Content-Type": "application/json"}
    _, reported, _ = await call(harness, "POST", f"{API}/run", data=b'{"model_id":', headers=headers)
    assert reported["detail"] == "body: JSON decode error: Expecting value (character 12)"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "[" * 40 + "]" * 40])
async def test_option_of_a_metric_that_cannot_be_sent_is_422(harness: GatewayHarness, value: str) -> None:
    metrics = f'[{{"name": "numeric", "options": {{"tolerance": {value}}}}}]'
    body = f'{{"model_id": "vllm/starter", "dataset_id": "{DATASET}", "metrics": {metrics}}}'
    headers = {"Content-Type": "application/json"}
    status, reported, _ = await call(harness, "POST", f"{API}/run", data=body.encode(), headers=headers)
    assert (status, reported["reason"]) == (422, "INVALID_PARAMETER")
    assert not harness.scheduler.submitted


async def test_refusals_of_the_scheduler_keep_their_sentences(harness: GatewayHarness) -> None:
    for kind, reason, expected in (
        (ErrorKind.NOT_FOUND, "DATASET_NOT_FOUND", 404),
        (ErrorKind.INVALID, "NO_TARGETS", 400),
        (ErrorKind.INVALID, "MODEL_MISMATCH", 400),
        (ErrorKind.INVALID, "INVALID_PARAMETER", 422),
    ):
        harness.scheduler.refusal = refused(kind, reason, f"This is about {reason}.")
        status, body, _ = await call(harness, "POST", f"{API}/run", json=ORDER)
        assert (status, body["reason"], body["detail"]) == (expected, reason, f"This is about {reason}.")


async def test_running_one_is_listed_with_progress_rate_and_the_time_left(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    progress = run.progress
    progress.total, progress.recorded, progress.phase = 300, 199, "running"
    progress.tokens_per_second, progress.failures["timeout"] = 512.3456, 2
    progress.eta_seconds, progress.eta_low_seconds, progress.eta_high_seconds = 20.0, 15.0, 31.0
    run.order.metrics.add(name="regex", options_json='{"pattern": "x"}')
    run.deadline.FromSeconds(1_700_003_600)
    path = f"{API}?limit=5&cursor=here&status=running&model=vllm/org/starter&dataset_id={DATASET}"
    status, body, _ = await call(harness, "GET", path)
    assert (status, body["total"], body["next_cursor"]) == (200, 1, "next")
    assert body["benchmarks"] == [
        {
            "benchmark_id": shown_id(run),
            "model_id": "vllm/org/starter",
            "model_name": "org/starter",
            "dataset_id": DATASET,
            "dataset_name": "rows.jsonl",
            "status": "running",
            "name": "",
            "tags": [],
            "progress": 66,
            "completed": 199,
            "total": 300,
            "throughput": 512.346,
            "eta_seconds": 20.0,
            "eta_low_seconds": 15.0,
            "eta_high_seconds": 31.0,
            "started_at": "2023-11-14T22:13:20Z",
            "completed_at": None,
            "deadline": "2023-11-14T23:13:20Z",
            "current_step": "running",
            "failed": 2,
            "metrics": [{"name": "regex", "options": {"pattern": "x"}}],
            "project_id": 0,
            "user": "bob",
            "priority": "normal",
            **dict.fromkeys(("project_name", "error", "wait", "stopped_early")),
        }
    ]
    [asked] = harness.scheduler.listed
    assert asked == scheduler_pb2.ListRunsRequest(
        page_size=5,
        page_token="here",
        state=run_pb2.RUN_STATE_RUNNING,
        model="vllm/org/starter",
        kind=run_pb2.RUN_KIND_DATASET,
        dataset_id=DATASET,
    )


async def test_one_that_is_over_has_figures_and_the_throughput_of_its_whole_time(
    harness: GatewayHarness,
) -> None:
    run = stored_run(harness)
    run.admitted_at.FromSeconds(1_700_000_010)
    run.finished_at.FromSeconds(1_700_000_030)
    run.progress.total = run.progress.recorded = 4
    run.progress.usage.completion_tokens = 500
    run.progress.eta_seconds = 0.0
    figure = summary_pb2.MetricFigure(metric="exact_match", mean=0.75, stderr=0.1, n=4)
    task = summary_pb2.TaskSummary(task="rows", answered=4, metrics=[figure])
    usage = outcome_pb2.TokenUsage(prompt_tokens=40, completion_tokens=500)
    harness.results.summaries[run.run_id] = summary_pb2.RunSummary(
        tasks=[task], answered=4, unparsed=1, usage=usage
    )
    status, body, _ = await call(harness, "GET", f"{API}/{shown_id(run)}")
    assert (status, body["status"], body["progress"]) == (200, "completed", 100)
    assert (body["throughput"], body["total_time_seconds"]) == (25.0, 20.0)
    assert (body["eta_seconds"], body["completed_at"]) == (None, "2023-11-14T22:13:50Z")
    assert (body["scores"]["exact_match"]["mean"], body["answered"], body["unparsed"]) == (0.75, 4, 1)
    assert (body["usage"]["completion_tokens"], body["cost"]) == (500, None)


async def test_one_that_waits_says_why_and_has_no_figures_yet(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_PENDING)
    run.wait.position, run.wait.blocked_by = 1, "3 runs are running"
    _, body, _ = await call(harness, "GET", f"{API}/{shown_id(run)}")
    assert (body["wait"]["blocked_by"], body["scores"], body["throughput"]) == ("3 runs are running", {}, 0.0)


async def test_one_that_failed_says_why(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_FAILED)
    run.error.reason, run.error.message = "DEADLINE_REACHED", "The window of 1 h closed."
    _, body, _ = await call(harness, "GET", f"{API}/{shown_id(run)}")
    assert body["error"] == "Job execution failed: The window of 1 h closed."


async def test_run_is_paused_resumed_cancelled_retried_and_deleted(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    path, name = f"{API}/{shown_id(run)}", shown_id(run)
    for method, tail, reported, state in (
        ("POST", "/pause", "paused", run_pb2.RUN_STATE_PAUSED),
        ("POST", "/resume", "is queued to resume", run_pb2.RUN_STATE_PENDING),
        ("POST", "/cancel", "cancelled; recorded answers are kept", run_pb2.RUN_STATE_CANCELLED),
        ("POST", "/retry", "is queued to retry what is missing", run_pb2.RUN_STATE_PENDING),
    ):
        status, body, _ = await call(harness, method, path + tail)
        assert (status, body) == (200, {"benchmark_id": name, "message": f"Run {name} {reported}"})
        assert harness.scheduler.runs[run.run_id].state == state
    status, body, _ = await call(harness, "DELETE", path)
    assert (status, body["reason"]) == (409, "RUN_STILL_ACTIVE")
    await call(harness, "POST", f"{path}/cancel")
    assert (await call(harness, "POST", f"{path}/cancel"))[0] == 409
    status, body, _ = await call(harness, "DELETE", path)
    assert (status, body["message"]) == (200, f"Run {name} deleted, with its answers")
    assert not harness.scheduler.runs
    status, body, _ = await call(harness, "DELETE", path)
    assert (status, body["reason"]) == (404, "RUN_NOT_FOUND")


async def test_a_run_without_figures_is_closed_again(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_COMPLETED)
    harness.results.summaries.pop(run.run_id, None)
    status, body, _ = await call(harness, "POST", f"{API}/{shown_id(run)}/reclose")
    computing = "is closed again; its figures are computed"
    assert (status, body["message"]) == (200, f"Run {shown_id(run)} {computing}")
    assert harness.results.reclosed == [run.run_id]


PATHS = (
    ("GET", ""),
    ("GET", "/results"),
    ("GET", "/results?format=csv"),
    ("GET", "/export"),
    ("POST", "/cancel"),
    ("POST", "/pause"),
    ("POST", "/resume"),
    ("POST", "/retry"),
    ("POST", "/reclose"),
    ("DELETE", ""),
)


@pytest.mark.parametrize(
    "name", ["nonsense", "bm_", "bm_" + 32 * "0", "661bc60f-9225-438c-a7d0-797db3523a5b", "bm_" + 32 * "G"]
)
async def test_id_of_no_run_is_404_in_a_sentence(harness: GatewayHarness, name: str) -> None:
    for method, tail in PATHS:
        status, body, _ = await call(harness, method, f"{API}/{name}{tail}")
        assert (status, body["reason"]) == (404, "RUN_NOT_FOUND")
        assert body["detail"] == f"Run {name} not found: no run over a data set has this id."


async def test_run_over_a_suite_is_none_here(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    run.order.dataset_id, run.order.suite = "", "glue"
    for method, tail in PATHS:
        assert (await call(harness, method, f"{API}/{shown_id(run)}{tail}"))[0] == 404
    assert harness.scheduler.runs[run.run_id].state == run_pb2.RUN_STATE_RUNNING


async def test_among_jobs_it_stands_under_its_data_set(harness: GatewayHarness) -> None:
    run = stored_run(harness)
    listed = (await call(harness, "GET", "/api/v1/benchmarking/results"))[1]["results"]
    assert [job["benchmark_suite"] for job in listed] == [DATASET]
    job = (await call(harness, "GET", f"/api/v1/benchmarking/results/{run.run_id}"))[1]
    assert list(job["performance_data"]) == [DATASET]


async def test_leaderboard_and_history_of_a_data_set_are_empty_or_refused_in_words_about_data_sets(
    harness: GatewayHarness,
) -> None:
    harness.scheduler.datasets.kept[DATASET] = dataset_pb2.Dataset(dataset_id=DATASET)
    for path in ("leaderboard", "history"):
        url = f"/api/v1/benchmarking/{path}?suite="
        assert (await call(harness, "GET", url + DATASET))[0] == 200
        status, body, _ = await call(harness, "GET", f"{url}ds_none")
        assert (status, body["detail"]) == (404, "There is no data set ds_none.")
