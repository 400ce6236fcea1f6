"""POST /compare and /rescore over a socket: promised fields, real figures, undefined as null."""

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import comparison_pb2, comparison_service_pb2, summary_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.compared_runs import failed_gate, planned_size, two_models
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"
MODELS = {"model_ids": ["vllm/a", "vllm/b"], "benchmark_suite": "glue", "metrics": ["accuracy"]}
RUNS = [str(uuid.uuid4()), str(uuid.uuid4())]


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        running.results.comparisons.comparison.CopyFrom(two_models())
        yield running


async def compared(harness: GatewayHarness, **body: Any) -> dict[str, Any]:
    status, answer, _ = await call(harness, "POST", f"{API}/compare", json={**MODELS, **body})
    assert status == 200
    comparison: dict[str, Any] = answer["comparison"]
    return comparison


async def test_comparison_has_the_promised_fields_with_real_figures(harness: GatewayHarness) -> None:
    reported = await compared(harness)
    assert reported["models_compared"] == ["a", "b"]
    assert [(run["model"], run["provider"]) for run in reported["runs"]] == [("a", "vllm"), ("b", "vllm")]
    assert (reported["best_performing"], reported["best_tied_with"]) == ("b", ["a"])
    assert (reported["performance_gap"], reported["performance_gap_ci95"]) == (0.02, [0.0, 0.04])
    test = "p = 0.060 (stratified normal, Holm-corrected over 3 tests)"
    assert reported["statistical_significance"] == f"{test}; the verdict depends on unparsed answers"
    assert "no significant difference between a and b on glue" in reported["recommendations"][0]
    assert reported["warnings"] == ["qqp: only a has it"]
    [asked] = harness.results.comparisons.compared
    assert (list(asked.models), asked.benchmark, list(asked.metrics)) == (
        ["vllm/a", "vllm/b"],
        "glue",
        ["accuracy"],
    )


async def test_every_task_has_its_own_row_and_what_is_undefined_is_null(harness: GatewayHarness) -> None:
    rows = {row["task"]: row for row in (await compared(harness))["differences"]}
    assert set(rows) == {"sst2", "rte", None, "cola"}
    rte = rows["rte"]
    assert (rte["first"], rte["second"], rte["verdict"]) == ("a", "b", "second_better")
    assert (rte["adjusted_p_value"], rte["pairs"], rte["smallest_detectable"]) == (0.003, 400, 0.04)
    assert (rte["second_unparsed"], rte["only_second_right"]) == (2, 18)
    cola = rows["cola"]
    assert (cola["difference"], cola["ci95"], cola["p_value"]) == (None, None, None)
    assert (cola["verdict"], cola["remark"]) == ("undefined", "only one pair")


async def test_models_are_named_as_they_were_ordered_or_in_full(harness: GatewayHarness) -> None:
    harness.scheduler.ordered_models = ["vllm/a", "vllm/b", "ollama/b"]
    await compared(harness, model_ids=["a", "vllm/b"])
    assert list(harness.results.comparisons.compared[-1].models) == ["vllm/a", "vllm/b"]
    status, body, _ = await call(harness, "POST", f"{API}/compare", json={**MODELS, "model_ids": ["a", "b"]})
    assert (status, body["reason"]) == (400, "UNKNOWN_MODEL")


async def test_a_gate_says_what_it_decided_task_by_task(harness: GatewayHarness) -> None:
    harness.results.comparisons.gate.CopyFrom(failed_gate())
    body = {"job_id": RUNS[0], "base_job_id": RUNS[1], "metrics": {"rte": "acc"}, "may_differ": ["agent"]}
    status, answer, _ = await call(harness, "POST", f"{API}/gate", json=body)
    assert status == 200
    gate = answer["gate"]
    assert (gate["verdict"], gate["run"]["model"], gate["base"]["model"]) == ("fail", "a", "b")
    tasks = {task["task"]: task for task in gate["tasks"]}
    assert (tasks["rte"]["verdict"], tasks["rte"]["upper_limit"]) == ("fail", -0.03)
    assert tasks["rte"]["difference"]["only_second_right"] == 18
    assert (tasks["cola"]["verdict"], tasks["cola"]["lower_limit"]) == ("inconclusive", None)
    [asked] = harness.results.comparisons.gated
    assert (asked.run_id, asked.base_run_id, dict(asked.metrics)) == (*RUNS, {"rte": "acc"})
    assert (asked.margin_points, asked.alpha, list(asked.may_differ)) == (1.0, 0.05, ["agent"])
    status, _, _ = await call(harness, "POST", f"{API}/gate", json={**body, "margin_points": 101})
    assert status == 422


async def test_a_gate_that_fails_is_told_before_it_is_answered(harness: GatewayHarness) -> None:
    gate, told = harness.results.comparisons.gate, harness.scheduler.gates.told
    body = {"job_id": RUNS[0], "base_job_id": RUNS[1]}
    request = comparison_service_pb2.GateRunRequest(run_id=RUNS[0], base_run_id=RUNS[1])
    gate.CopyFrom(failed_gate())
    async with ProctorClient(harness.grpc) as client:
        assert (await call(harness, "POST", f"{API}/gate", json=body))[0] == 200
        assert (await client.comparisons.GateRun(request)).gate == gate
        assert told == [failed_gate()] * 2
        gate.verdict = comparison_pb2.GATE_VERDICT_PASS
        assert (await call(harness, "POST", f"{API}/gate", json=body))[0] == 200
        await client.comparisons.GateRun(request)
        assert len(told) == 2
        gate.CopyFrom(failed_gate())
        harness.scheduler.gates.refusal = refused(ErrorKind.EXHAUSTED, "BUSY", "Try later.")
        assert (await call(harness, "POST", f"{API}/gate", json=body))[1]["reason"] == "BUSY"
        with pytest.raises(Refused) as caught:
            await client.comparisons.GateRun(request)
        assert caught.value.reason == "BUSY"


async def test_a_plan_has_rows_by_rollouts_for_each_task(harness: GatewayHarness) -> None:
    harness.results.comparisons.plan.CopyFrom(planned_size())
    harness.scheduler.ordered_models = ["vllm/a", "vllm/b"]
    body = {"model_ids": ["a", "vllm/b"], "benchmark_suite": "glue", "difference_points": 1, "power": 0.9}
    status, answer, _ = await call(harness, "POST", f"{API}/plan-size", json=body)
    assert status == 200
    plan = answer["plan"]
    assert [run["model"] for run in plan["runs"]] == ["a", "b"]
    sst2, rte, cola = plan["tasks"]
    assert sst2["sizes"] == [{"rollouts": 1, "rows": 12_000}, {"rollouts": 2, "rows": 9_000}]
    assert (sst2["sample_std"], sst2["difference"]["noise_floor"]) == (0.3, 0.023)
    assert (rte["sizes"], rte["rollout_std"]) == ([{"rollouts": None, "rows": 5_000}], None)
    assert (cola["sizes"], cola["difference"]["noise_floor"]) == ([], None)
    [asked] = harness.results.comparisons.planned
    assert (list(asked.models), asked.difference_points, asked.power) == (["vllm/a", "vllm/b"], 1.0, 0.9)
    for wrong in ({"difference_points": 0}, {"model_ids": ["a", "b", "c"]}, {"max_rollouts": 0}):
        status, _, _ = await call(harness, "POST", f"{API}/plan-size", json={**body, **wrong})
        assert status == 422


async def test_two_models_of_one_name_are_shown_with_their_providers(harness: GatewayHarness) -> None:
    harness.results.comparisons.comparison.runs[1].model = "ollama/a"
    assert (await compared(harness))["models_compared"] == ["vllm/a", "ollama/a"]


async def test_ids_of_jobs_are_compared_as_runs(harness: GatewayHarness) -> None:
    await compared(harness, model_ids=RUNS, benchmark_suite="", force=True)
    [asked] = harness.results.comparisons.compared
    assert (list(asked.run_ids), list(asked.models), asked.is_forced) == (RUNS, [], True)


async def test_two_runs_of_one_model_are_distinguished(harness: GatewayHarness) -> None:
    comparison = harness.results.comparisons.comparison
    comparison.runs[1].model = "vllm/a"
    names = (await compared(harness))["models_compared"]
    assert names == [f"a (run {run.run_id[:8]})" for run in comparison.runs]


@pytest.mark.parametrize(
    "body",
    [
        {"model_ids": ["vllm/a"]},
        {"model_ids": [f"vllm/{number}" for number in range(7)]},
        {"model_ids": ["vllm/a", "vllm/a"]},
        {"model_ids": ["vllm/a", RUNS[0]]},
        {"benchmark_suite": ""},
        {"model_ids": ["vllm/a", "\ud800"]},
        {"alpha": 0.01},
    ],
)
async def test_what_cannot_be_compared_is_422(harness: GatewayHarness, body: dict[str, Any]) -> None:
    status, _, _ = await call(harness, "POST", f"{API}/compare", json={**MODELS, **body})
    assert status == 422
    assert not harness.results.comparisons.compared


@pytest.mark.parametrize(
    ("kind", "reason", "status"),
    [
        (ErrorKind.CONFLICT, "NOT_COMPARABLE", 409),
        (ErrorKind.CONFLICT, "NO_COMMON_SAMPLES", 409),
        (ErrorKind.CONFLICT, "COMPARISON_TOO_SLOW", 409),
        (ErrorKind.CONFLICT, "RUN_NOT_FROZEN", 409),
        (ErrorKind.INVALID, "UNKNOWN_METRIC", 400),
    ],
)
async def test_refusals_keep_their_reason(
    harness: GatewayHarness, kind: ErrorKind, reason: str, status: int
) -> None:
    harness.results.comparisons.refusal = refused(kind, reason, "Not like this.")
    answered, body, _ = await call(harness, "POST", f"{API}/compare", json=MODELS)
    assert (answered, body["reason"], body["detail"]) == (status, reason, "Not like this.")


async def test_rescored_figures_stand_beside_the_recorded_ones(harness: GatewayHarness) -> None:
    response = harness.results.rescoring.response
    response.changed = 7
    response.summary.CopyFrom(
        summary_pb2.TaskSummary(metrics=[summary_pb2.MetricFigure(metric="exact_match", mean=0.5, n=8)])
    )
    response.recorded.CopyFrom(
        summary_pb2.TaskSummary(unparsed=3, metrics=[summary_pb2.MetricFigure(metric="exact_match", n=8)])
    )
    metric = {"metric": "exact_match", "ignore_case": True}
    filters = [{"name": "last", "filter": [{"function": "take_first"}]}]
    body = {"task": "gsm8k", "metrics": [metric, "contains"], "filters": filters}
    status, reported, _ = await call(harness, "POST", f"{API}/rescore/{RUNS[0]}", json=body)
    assert status == 200
    assert (reported["figures"]["exact_match"]["mean"], reported["changed"]) == (0.5, 7)
    assert (reported["recorded"]["exact_match"]["mean"], reported["recorded_unparsed"]) == (None, 3)
    [asked] = harness.results.rescoring.asked
    assert [(use.name, use.options_json) for use in asked.metrics] == [
        ("exact_match", '{"ignore_case": true}'),
        ("contains", ""),
    ]
    assert json.loads(asked.filters_json) == filters


@pytest.mark.parametrize(("filters", "sent"), [(None, None), ([], "")])
async def test_filters_left_out_are_the_tasks_own_and_no_filters_are_none(
    harness: GatewayHarness, filters: object, sent: str | None
) -> None:
    await call(harness, "POST", f"{API}/rescore/{RUNS[0]}", json={"task": "gsm8k", "filters": filters})
    [asked] = harness.results.rescoring.asked
    assert (asked.filters_json if asked.HasField("filters_json") else None) == sent


@pytest.mark.parametrize(
    "body",
    [{}, {"task": "t", "metrics": [{"ignore_case": True}]}, {"task": "t", "filters": [{"x": "\ud800"}]}],
)
async def test_rescoring_of_another_form_is_422(harness: GatewayHarness, body: dict[str, Any]) -> None:
    assert (await call(harness, "POST", f"{API}/rescore/{RUNS[0]}", json=body))[0] == 422
    nan = b'{"task": "t", "metrics": [{"metric": "f1", "threshold": NaN}]}'
    headers = {"Content-Type": "application/json"}
    assert (await call(harness, "POST", f"{API}/rescore/{RUNS[0]}", data=nan, headers=headers))[0] == 422
    assert not harness.results.rescoring.asked


async def test_metric_that_cannot_be_read_is_reported_by_its_position(harness: GatewayHarness) -> None:
    body = {"task": "gsm8k", "metrics": ["exact_match", {"name": "contains"}]}
    status, reported, _ = await call(harness, "POST", f"{API}/rescore/{RUNS[0]}", json=body)
    assert (status, [error["field"] for error in reported["errors"]]) == (422, ["metrics.1.metric"])
