"""The benchmark API over a socket: exact bodies, errors, headers; a real gateway before fake services."""

import io
import uuid
from collections.abc import AsyncIterator

import pytest

from proctor.v1 import outcome_pb2, run_pb2, summary_pb2
from services.common.errors import ErrorKind
from tests.fakes.gateway.backend_services import refused
from tests.fakes.gateway.gateway_harness import GatewayHarness, gateway_harness
from tests.fakes.gateway.http_calls import call

API = "/api/v1/benchmarking"
ORDER = {"project_id": 1, "suite": "glue", "config": {"provider": "vllm", "model": "starter"}}


@pytest.fixture
async def harness() -> AsyncIterator[GatewayHarness]:
    async with gateway_harness() as running:
        yield running


def stored_run(harness: GatewayHarness, state: run_pb2.RunState.ValueType) -> run_pb2.Run:
    run = run_pb2.Run(run_id=str(uuid.uuid4()), state=state)
    run.order.suite, run.order.model = "glue", "vllm/starter"
    run.created_at.FromSeconds(1_700_000_000)
    harness.scheduler.put(run)
    return run


async def test_started_job_is_answered_with_id_message_and_estimate(harness: GatewayHarness) -> None:
    harness.scheduler.estimated_seconds = 1200.0
    status, body, _ = await call(
        harness, "POST", f"{API}/run", json={**ORDER, "limit": 50, "tasks": ["sst2"]}
    )
    assert status == 200
    assert body == {
        "job_id": next(iter(harness.scheduler.runs)),
        "message": "Benchmarking started for suite: glue",
        "estimated_duration": "10-30 minutes",
        "estimated_seconds": 1200.0,
        "estimated_cost": None,
        "currency": None,
    }
    submitted = harness.scheduler.submitted[0]
    assert (submitted.order.limit, list(submitted.order.tasks)) == (50, ["sst2"])
    assert submitted.user == "local"
    assert len(submitted.request_id) == 36


@pytest.mark.parametrize(
    ("headers", "user"),
    [
        ({"X-Proctor-User": "bob"}, "bob"),
        ({"X-API-Key": "any"}, "local"),
    ],
)
async def test_user_of_a_gateway_without_keys_is_named_by_a_header(
    harness: GatewayHarness, headers: dict[str, str], user: str
) -> None:
    await call(harness, "POST", f"{API}/run", json=ORDER, headers=headers)
    assert harness.scheduler.submitted[0].user == user


async def test_server_of_an_order_reaches_the_scheduler_and_its_refusal_is_409(
    harness: GatewayHarness,
) -> None:
    body = {**ORDER, "config": {"provider": "openai", "model": "m", "base_url": "http://inside:8000/v1"}}
    await call(harness, "POST", f"{API}/run", json=body)
    assert harness.scheduler.submitted[0].order.base_url == "http://inside:8000/v1"
    harness.scheduler.refusal = refused(ErrorKind.CONFLICT, "BASE_URL_NOT_ALLOWED", "It is not allowed.")
    status, refusal, _ = await call(harness, "POST", f"{API}/run", json=body)
    assert (status, refusal["detail"], refusal["reason"]) == (
        409,
        "It is not allowed.",
        "BASE_URL_NOT_ALLOWED",
    )


async def test_unknown_suite_is_refused_in_the_known_words(harness: GatewayHarness) -> None:
    facts = {"suite": "glu", "supported": "glue, starter"}
    harness.scheduler.refusal = refused(ErrorKind.INVALID, "UNKNOWN_SUITE", "There is no suite glu.", **facts)
    status, body, response = await call(harness, "POST", f"{API}/run", json=ORDER)
    assert status == 400
    assert response.content_type == "application/problem+json"
    assert body == {
        "type": "urn:proctor:problem:unknown-suite",
        "title": "Unknown suite",
        "status": 400,
        "detail": "Invalid benchmark suite. Supported: glue, starter",
        "instance": f"{API}/run",
        "reason": "UNKNOWN_SUITE",
    }


async def test_full_queue_says_when_to_come_back(harness: GatewayHarness) -> None:
    facts = {"user": "local", "limit": "10", "retry_after_seconds": "17"}
    harness.scheduler.refusal = refused(ErrorKind.EXHAUSTED, "QUEUE_FULL", "Too many runs wait.", **facts)
    status, body, response = await call(harness, "POST", f"{API}/run", json=ORDER)
    assert status == 429
    assert body["detail"] == "Queue is full. Please try again later."
    assert body["retry_after"] == 17
    assert response.headers["Retry-After"] == "17"


async def test_parameter_out_of_range_is_422_with_the_field_named(harness: GatewayHarness) -> None:
    config = {"provider": "ollama", "model": "m", "ollama_params": {"temperature": 9}}
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "config": config})
    assert status == 422
    assert body["errors"][0]["field"] == "config.ollama_params.temperature"
    assert "less than or equal to 2 (it is 9)" in body["detail"]
    assert not harness.scheduler.submitted


@pytest.mark.parametrize(
    "config",
    [
        {"api_key": "sk-planted"},
        {"Api-Key": "sk-planted"},
        {"params": '{"apiKey": "sk-planted"}'},
        {"base_url": {"token": "sk-planted"}},
    ],
)
async def test_key_in_a_malformed_request_is_not_repeated(
    harness: GatewayHarness, config: dict[str, object]
) -> None:
    config |= {"provider": "openai", "model": "m"}
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "config": config})
    assert status == 422
    assert body["errors"][0]["field"].startswith("config.")
    assert "planted" not in str(body)


@pytest.mark.parametrize("name", ["context_tokens", "max_tokens"])
async def test_parameter_by_another_name_of_it_is_422_and_says_which(
    harness: GatewayHarness, name: str
) -> None:
    config = {"provider": "ollama", "model": "m", "ollama_params": {name: "x"}}
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "config": config})
    assert status == 422
    assert body["detail"].startswith(f"config.ollama_params: {name} is called num_")


@pytest.mark.parametrize("query", ["suite=%07", "model_name=a%07b"])
async def test_what_the_scheduler_refuses_of_a_list_is_422_in_its_words(
    harness: GatewayHarness, query: str
) -> None:
    sentence = "suite holds a character that names cannot hold."
    harness.scheduler.refusal = refused(
        ErrorKind.INVALID, "INVALID_PARAMETER", sentence, field="suite", sentence=sentence
    )
    status, body, _ = await call(harness, "GET", f"{API}/results?{query}")
    assert (status, body["detail"]) == (422, sentence)


async def test_half_a_character_is_422_wherever_it_stands(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "tasks": ["\ud800"]})
    assert (status, body["errors"][0]["field"]) == (422, "tasks.0")
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "\ud800": 1})
    assert (status, body["errors"][0]["field"]) == (422, "body")


async def test_body_that_is_no_json_is_422(harness: GatewayHarness) -> None:
    headers = {"Content-Type": "application/json"}
    status, body, _ = await call(harness, "POST", f"{API}/run", data=b"{", headers=headers)
    assert status == 422
    assert isinstance(body["detail"], str)


async def chunks_of_blanks() -> AsyncIterator[bytes]:
    for _ in range(32):
        yield b" " * 65536


@pytest.mark.parametrize(
    "data", [io.BytesIO(b" " * 32 * 65536), chunks_of_blanks()], ids=["sized", "chunked"]
)
async def test_body_over_the_limit_is_refused(harness: GatewayHarness, data: object) -> None:
    headers = {"Content-Type": "application/json"}
    status, body, _ = await call(harness, "POST", f"{API}/run", data=data, headers=headers)
    assert status == 413
    assert "larger than 1048576 bytes" in body["detail"]


async def test_results_of_a_finished_job_have_the_promised_fields(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_COMPLETED)
    run.finished_at.FromSeconds(1_700_000_100)
    task = summary_pb2.TaskSummary(task="sst2", answered=3)
    harness.results.summaries[run.run_id] = summary_pb2.RunSummary(tasks=[task], answered=3)
    status, body, _ = await call(harness, "GET", f"{API}/results/{run.run_id}")
    assert status == 200
    promised = "job_id status progress summary performance_data failures unparsed completed_at"
    beside = "groups tasks unparsed_rate failed_rate timing usage order"
    assert set(body) == {*promised.split(), *beside.split()}
    assert body["completed_at"] == "2023-11-14T22:15:00Z"
    assert body["summary"]["benchmarks_run"] == ["sst2"]


async def test_order_is_estimated_and_not_started(harness: GatewayHarness) -> None:
    harness.scheduler.estimated_seconds, harness.scheduler.estimated_cost = 90.0, 0.25
    harness.scheduler.price = run_pb2.ModelPrice(currency="EUR")
    status, body, _ = await call(harness, "POST", f"{API}/estimate", json={**ORDER, "limit": 50})
    assert (status, body["estimated_duration"], body["estimated_cost"]) == (200, "1-2 minutes", 0.25)
    assert (body["estimated_seconds"], body["currency"]) == (90.0, "EUR")
    [asked] = harness.scheduler.estimated
    assert (asked.order.limit, asked.user) == (50, "local")
    assert not harness.scheduler.submitted
    assert not harness.scheduler.runs


async def test_what_a_job_costs_is_reported_where_its_model_has_a_price(harness: GatewayHarness) -> None:
    price = run_pb2.ModelPrice(input_per_million=2, output_per_million=10, currency="EUR")
    harness.scheduler.estimated_cost, harness.scheduler.price = 0.25, price
    _, started, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "max_cost": 0.5})
    assert (started["estimated_cost"], started["currency"]) == (0.25, "EUR")
    assert harness.scheduler.submitted[0].order.max_cost == 0.5
    run = stored_run(harness, run_pb2.RUN_STATE_FAILED)
    run.error.reason = "COST_LIMIT_REACHED"
    run.error.message = "Resource limits exceeded (cost): the run has reached its max_cost of 0.5 EUR."
    usage = outcome_pb2.TokenUsage(
        prompt_tokens=200, completion_tokens=10, cached_tokens=5, reasoning_tokens=3
    )
    summary = summary_pb2.RunSummary(usage=usage, cost=0.0005, price=price)
    harness.results.summaries[run.run_id] = summary
    _, body, _ = await call(harness, "GET", f"{API}/results/{run.run_id}")
    assert (body["cost"], body["currency"]) == (0.0005, "EUR")
    assert body["usage"] == {
        "prompt_tokens": 200,
        "completion_tokens": 10,
        "cached_tokens": 5,
        "reasoning_tokens": 3,
    }
    assert body["error"] == f"Job execution failed: {run.error.message}"


@pytest.mark.parametrize("max_cost", [0, -1, "NaN", "Infinity"])
async def test_a_cost_limit_that_is_none_is_422(harness: GatewayHarness, max_cost: object) -> None:
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "max_cost": max_cost})
    assert (status, body["errors"][0]["field"]) == (422, "max_cost")


async def test_a_cost_limit_without_a_price_is_409(harness: GatewayHarness) -> None:
    sentence = "No price is known of grok/x, so max_cost cannot be kept."
    harness.scheduler.refusal = refused(ErrorKind.CONFLICT, "NO_PRICE", sentence, model="grok/x")
    status, body, _ = await call(harness, "POST", f"{API}/run", json={**ORDER, "max_cost": 1})
    assert (status, body["reason"], body["detail"]) == (409, "NO_PRICE", sentence)


async def test_results_of_a_job_that_was_not_planned_yet_are_empty(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_PENDING)
    run.wait.position, run.wait.blocked_by = 1, "3 runs are running"
    status, body, _ = await call(harness, "GET", f"{API}/results/{run.run_id}")
    assert status == 200
    assert body["performance_data"] == {"glue": {}}
    assert body["wait"] == {"position": 1, "blocked_by": "3 runs are running"}


@pytest.mark.parametrize("job_id", ["nonsense", "00000000-0000-0000-0000-000000000000"])
async def test_unknown_job_is_404_in_the_known_words(harness: GatewayHarness, job_id: str) -> None:
    for method, path in (("GET", "results"), ("POST", "cancel"), ("POST", "retry")):
        status, body, _ = await call(harness, method, f"{API}/{path}/{job_id}")
        assert status == 404
        assert body["detail"] == f"Benchmark job {job_id} not found"


async def test_cancelling_twice_is_a_conflict(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    status, body, _ = await call(harness, "POST", f"{API}/cancel/{run.run_id}")
    assert (status, body) == (200, {"message": f"Job {run.run_id} cancelled successfully"})
    status, body, _ = await call(harness, "POST", f"{API}/cancel/{run.run_id}")
    assert status == 409
    assert body["detail"] == f"Run {run.run_id} is already cancelled."


async def test_cancelled_job_can_be_retried(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_CANCELLED)
    status, _, _ = await call(harness, "POST", f"{API}/retry/{run.run_id}")
    assert status == 200
    assert harness.scheduler.runs[run.run_id].epoch == 1


@pytest.mark.parametrize(
    ("problems", "told"),
    [
        ([], "has all its figures"),
        (["No rte."], "was closed again, and figures are still missing: No rte."),
    ],
)
async def test_closing_a_job_again_says_what_became_of_its_figures(
    harness: GatewayHarness, problems: list[str], told: str
) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_COMPLETED)
    harness.results.summaries[run.run_id] = summary_pb2.RunSummary(run_id=run.run_id, problems=problems)
    status, body, _ = await call(harness, "POST", f"{API}/reclose/{run.run_id}")
    assert (status, body) == (200, {"message": f"Job {run.run_id} {told}"})


async def test_list_of_jobs_is_filtered_and_paged(harness: GatewayHarness) -> None:
    run = stored_run(harness, run_pb2.RUN_STATE_RUNNING)
    query = {
        "model_name": "vllm/starter",
        "suite": "glue",
        "status": "running",
        "limit": "5",
        "cursor": "here",
    }
    status, body, _ = await call(harness, "GET", f"{API}/results", params=query)
    assert status == 200
    listed = {
        "job_id": run.run_id,
        "status": "running",
        "model_name": "starter",
        "provider": "vllm",
        "benchmark_suite": "glue",
        "created_at": "2023-11-14T22:13:20Z",
        "completed_at": None,
    }
    assert body == {"results": [listed], "total": 1, "next_cursor": "next"}
    asked = harness.scheduler.listed[0]
    assert (asked.model, asked.benchmark, asked.state) == ("vllm/starter", "glue", run_pb2.RUN_STATE_RUNNING)
    assert (asked.page_size, asked.page_token) == (5, "here")


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("", run_pb2.RUN_KIND_SUITE),
        ("?kind=suite", run_pb2.RUN_KIND_SUITE),
        ("?kind=dataset", run_pb2.RUN_KIND_DATASET),
        ("?kind=all", run_pb2.RUN_KIND_UNSPECIFIED),
        ("?suite=ds_1", run_pb2.RUN_KIND_UNSPECIFIED),
    ],
)
async def test_lists_have_runs_over_suites_unless_another_kind_is_asked_for(
    harness: GatewayHarness, query: str, kind: run_pb2.RunKind.ValueType
) -> None:
    stored_run(harness, run_pb2.RUN_STATE_COMPLETED)
    harness.results.entries.page.total = 1
    assert (await call(harness, "GET", f"{API}/results{query}"))[0] == 200
    assert (await call(harness, "GET", f"{API}/history{query}"))[0] == 200
    assert [asked.kind for asked in harness.scheduler.listed] == [kind]
    assert [asked.kind for asked in harness.results.entries.pages_asked] == [kind]


async def test_a_model_is_found_by_the_name_it_was_ordered_by_and_by_its_full_name(
    harness: GatewayHarness,
) -> None:
    stored_run(harness, run_pb2.RUN_STATE_COMPLETED)
    harness.scheduler.ordered_models = ["ollama/mistral:latest", "vllm/meta-llama/Llama-3", "meta/other"]
    for name in ("mistral:latest", "ollama/mistral:latest", "meta-llama/Llama-3", "unknown"):
        assert (await call(harness, "GET", f"{API}/results", params={"model_name": name}))[0] == 200
        assert (await call(harness, "GET", f"{API}/history", params={"model_name": name}))[0] == 200
    meant = ["ollama/mistral:latest", "ollama/mistral:latest", "vllm/meta-llama/Llama-3", "unknown"]
    assert [asked.model for asked in harness.scheduler.listed] == meant
    assert [asked.model for asked in harness.results.entries.pages_asked] == meant


@pytest.mark.parametrize("path", ["results", "history"])
async def test_a_name_that_models_of_several_providers_have_is_refused_with_the_candidates(
    harness: GatewayHarness, path: str
) -> None:
    harness.scheduler.ordered_models = ["ollama/mistral", "vllm/mistral"]
    status, body, _ = await call(harness, "GET", f"{API}/{path}?model_name=mistral")
    assert (status, body["reason"]) == (400, "UNKNOWN_MODEL")
    assert "ollama/mistral, vllm/mistral" in body["detail"]


@pytest.mark.parametrize("query", ["status=lost", "limit=0", "limit=x"])
async def test_list_with_a_bad_query_is_422(harness: GatewayHarness, query: str) -> None:
    status, body, _ = await call(harness, "GET", f"{API}/results?{query}")
    assert status == 422
    assert body["errors"][0]["field"] == query.partition("=")[0]


async def test_unknown_path_is_a_problem_as_well(harness: GatewayHarness) -> None:
    status, body, _ = await call(harness, "GET", "/nowhere")
    assert status == 404
    assert (body["detail"], body["reason"]) == ("Not Found", "NOT_FOUND")


async def test_backends_that_are_away_are_503_with_a_sentence(harness: GatewayHarness) -> None:
    await harness.stop_backends()
    status, body, response = await call(harness, "GET", f"{API}/results")
    assert status == 503
    assert body["reason"] == "DEPENDENCY_UNAVAILABLE"
    assert body["detail"].startswith("scheduler does not answer")
    assert "Retry-After" in response.headers
    status, body, _ = await call(harness, "GET", "/readyz")
    assert status == 503
    assert body["dependencies"] == dict.fromkeys(("scheduler", "results", "streams"), "unreachable")
    assert (await call(harness, "GET", "/healthz"))[0] == 200
