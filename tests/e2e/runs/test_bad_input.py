"""Bad input through every door: one clear sentence, the right codes, and nothing half-made stays behind."""

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio

from proctor.client import errors as client_errors
from proctor.stack.options import vllm_pool
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.v1 import scheduler_service_pb2_grpc as scheduler_grpc
from proctor.values.providers.pool import PoolModel
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import ended
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.suites.suite_folder import CHOICE_TASK, write_suite
from tests.fakes.thorough_cases import first_cases
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROW = '{"thing": "grass", "label": 1}\n'
ROWS = ROW + '{"label": 0}\n'
# Its worker never comes as far as vLLM, so that any python will do.
FOLDERS = vllm_pool(
    PoolModel("vllm/absent", "/nowhere/at/all"), PoolModel("vllm/folder", str(Path(__file__).parent))
)
ANY_PYTHON = {"PROCTOR_VLLM_PYTHON": sys.executable}
FROM_FILE = {**CHOICE_TASK, "dataset": {"file": "rows.jsonl"}}


@dataclass(frozen=True)
class Refusal:
    """An order that is refused, by what differs from a good one, and how each door says so."""

    changes: dict[str, Any]
    arguments: str
    reason: str
    words: tuple[str, ...]
    code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT
    http_status: int = 400
    body: dict[str, Any] = field(default_factory=dict)


REFUSALS = {
    "unknown suite": Refusal(
        {"suite": "glu"}, "--suite glu", "UNKNOWN_SUITE", ("Invalid benchmark suite. Supported: ", "keyed")
    ),
    "unknown task": Refusal(
        {"tasks": ["echo"]}, "--task echo", "UNKNOWN_TASK", ("echo", "echo_key"), body={"tasks": ["echo"]}
    ),
    "unknown provider": Refusal(
        {"model": "nobody/fake"},
        "--model nobody/fake",
        "UNKNOWN_PROVIDER",
        ("nobody", "openai"),
        body={"config": {"provider": "nobody", "model": "fake"}},
    ),
    "unknown model": Refusal(
        {"model": "vllm/unknown"},
        "--model vllm/unknown",
        "UNKNOWN_MODEL",
        ("vllm/unknown", "vllm/absent"),
        body={"config": {"provider": "vllm", "model": "unknown"}},
    ),
    "limit of 0": Refusal(
        {"limit": 0},
        "--limit 0",
        "INVALID_PARAMETER",
        ("limit", "1", "0"),
        http_status=422,
        body={"limit": 0},
    ),
    "limit of -1": Refusal(
        {"limit": -1},
        "--limit -1",
        "INVALID_PARAMETER",
        ("limit", "1", "-1"),
        http_status=422,
        body={"limit": -1},
    ),
    "temperature of 9": Refusal(
        {"params": run_pb2.GenerationParams(temperature=9)},
        "--temperature 9",
        "INVALID_PARAMETER",
        ("temperature", "9", "2"),
        http_status=422,
        body={"params": {"temperature": 9}},
    ),
    "negative seed": Refusal(
        {"params": run_pb2.GenerationParams(seed=-1)},
        "--seed -1",
        "INVALID_PARAMETER",
        ("seed", "-1", "0"),
        http_status=422,
        body={"params": {"seed": -1}},
    ),
    "odd model name": Refusal(
        {"model": "openai/../admin"},
        "--model openai/../admin",
        "INVALID_PARAMETER",
        ("model holds the part ..",),
        http_status=422,
        body={"config": {"provider": "openai", "model": "../admin"}},
    ),
    "parameter that the provider does not take": Refusal(
        {"params": run_pb2.GenerationParams(context_tokens=4096)},
        "--param context_tokens=4096",
        "INVALID_PARAMETER",
        ("OpenAI protocol takes no context_tokens (num_ctx); leave it out",),
        http_status=422,
        body={"config": {"provider": "openai", "model": "fake", "ollama_params": {"num_ctx": 4096}}},
    ),
    "server that nobody allowed": Refusal(
        {"base_url": "http://127.0.0.1:4222"},
        "--base-url http://127.0.0.1:4222",
        "BASE_URL_NOT_ALLOWED",
        ("http://127.0.0.1:4222 is not allowed", "PROCTOR_ALLOWED_BASE_URLS"),
        code=grpc.StatusCode.FAILED_PRECONDITION,
        http_status=409,
        body={"config": {"provider": "openai", "model": "fake", "base_url": "http://127.0.0.1:4222"}},
    ),
    "template error": Refusal(
        {"suite": "broken"},
        "--suite broken",
        "INVALID_SUITE_FILE",
        ("colours.yaml", "doc_to_text"),
        code=grpc.StatusCode.FAILED_PRECONDITION,
        http_status=409,
        body={"suite": "broken"},
    ),
}


def broken_suites(folder: Path) -> tuple[Path, ...]:
    """A template error; a row without the field that the task needs; rows that are nowhere; one of 10 MB."""
    write_suite(folder, {**FROM_FILE, "doc_to_text": "{{thing is"}, suite="broken")
    write_suite(folder, FROM_FILE, suite="lacking")
    (folder / "lacking" / "rows.jsonl").write_text(ROWS)
    write_suite(folder, CHOICE_TASK, suite="nowhere")
    write_suite(folder, FROM_FILE, suite="heavy")
    (folder / "heavy" / "rows.jsonl").write_text(ROW + ROW.replace("grass", "x" * 10_000_000))
    return tuple(folder / name for name in ("broken", "lacking", "nowhere", "heavy"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        suites = broken_suites(state_dir.parent / "own")
        order = StackOrder(
            suites=suites,
            more_pools=(FOLDERS,),
            environment={**SHORT_TIMEOUTS, **ANY_PYTHON, "HF_HUB_OFFLINE": "1"},
        )
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


def good_order(**changes: Any) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(**{"project_id": 1, "suite": "keyed", "model": "openai/fake", **changes})


async def stored_runs(stack: StackHarness) -> int:
    return (await stack.client.runs.ListRuns(scheduler_pb2.ListRunsRequest())).total


@pytest.fixture(params=list(REFUSALS.values()), ids=list(REFUSALS))
def refusal(request: pytest.FixtureRequest) -> Refusal:
    assert isinstance(request.param, Refusal)
    return request.param


async def test_grpc_refuses_with_code_reason_and_sentence(stack: StackHarness, refusal: Refusal) -> None:
    before = await stored_runs(stack)
    async with grpc.aio.insecure_channel(stack.stack.gateway_grpc) as channel:
        stub = scheduler_grpc.SchedulerServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stub.SubmitRun(scheduler_pb2.SubmitRunRequest(order=good_order(**refusal.changes)))
    failure = client_errors.client_error(raised.value, stack.stack.gateway_grpc)
    assert (raised.value.code(), failure.reason) == (refusal.code, refusal.reason)
    assert_clear(failure.message, refusal)
    assert await stored_runs(stack) == before


async def test_rest_refuses_with_status_and_detail(stack: StackHarness, refusal: Refusal) -> None:
    before = await stored_runs(stack)
    good = {"project_id": 1, "suite": "keyed", "config": {"provider": "openai", "model": "fake"}}
    body = {**good, **(refusal.body or refusal.changes)}
    answer = await http(stack, "POST", f"{API}/run", json=body)
    assert (answer.status, answer.body["reason"]) == (refusal.http_status, refusal.reason)
    assert_clear(answer.body["detail"], refusal)
    assert await stored_runs(stack) == before


async def test_command_line_refuses_with_exit_code_and_sentence(
    stack: StackHarness, refusal: Refusal
) -> None:
    usual = {"--suite": "keyed", "--model": "openai/fake"}
    others = [f"{name} {value}" for name, value in usual.items() if name not in refusal.arguments.split()]
    end = await proctor(stack, f"run {' '.join(others)} {refusal.arguments}")
    assert (end.code, end.out) == (4 if refusal.reason.startswith("UNKNOWN_") else 2, "")
    assert_clear(end.err, refusal)


def assert_clear(sentence: str, refusal: Refusal) -> None:
    assert "Traceback" not in sentence
    for word in refusal.words:
        assert word in sentence


FAILED_PLANS = {
    "heavy": ("INVALID_ROW", ("colours", "row 1", "4194304")),
    "lacking": ("INVALID_ROW", ("colours", "row 1", "thing")),
    "nowhere": ("ROWS_UNAVAILABLE", ("Failed to load NOWHERE dataset", "PROCTOR_DATA_DIR", "hub")),
}


@first_cases(1, "suite", FAILED_PLANS)
async def test_run_over_unusable_rows_fails_with_a_sentence_and_leaves_nothing(
    stack: StackHarness, suite: str
) -> None:
    reason, words = FAILED_PLANS[suite]
    run_id = await stack.submit(good_order(suite=suite))
    run = await ended(stack, run_id)
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, reason)
    for word in words:
        assert word in run.error.message
    shown = (await http(stack, "GET", f"{API}/results/{run_id}")).body
    assert (shown["status"], shown["error"]) == ("failed", run.error.message)
    end = await proctor(stack, f"watch {run_id}")
    assert end.code == 1
    assert words[0] in end.out + end.err
    async with stack.database() as database:
        for table in ("scheduler.run_tasks", "scheduler.shards", "results.run_records", "results.outcomes"):
            left = await database.fetchval(f"SELECT count(*) FROM {table} WHERE run_id = $1", run_id)
            assert left == 0, table


@pytest.mark.parametrize(
    ("model", "words"), [("vllm/absent", "/nowhere/at/all"), ("vllm/folder", "is not a model")]
)
async def test_folder_that_is_no_model_fails_the_run_within_seconds(
    stack: StackHarness, model: str, words: str
) -> None:
    run = await ended(stack, await stack.submit(good_order(model=model)), limit_seconds=30)
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, "MODEL_CANNOT_LOAD")
    assert words in run.error.message


async def test_model_that_the_provider_does_not_know_fails_the_run_at_once_in_its_words(
    stack: StackHarness,
) -> None:
    """No other run is affected: those of the pool go on."""
    run_id, other = [await stack.submit(good_order(model=f"openai/{model}")) for model in ("unknown", "fake")]
    run = await ended(stack, run_id, limit_seconds=15)
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, "PROVIDER_REFUSED")
    assert run.error.message.startswith("AI provider error: The server answered 404")
    assert "`unknown` does not exist" in run.error.message
    summary = await stack.client.summary(run_id)
    assert (dict(summary.failures), summary.answered) == ({}, 0)
    shown = (await http(stack, "GET", f"{API}/results/{run_id}")).body
    assert (shown["status"], shown["error"]) == ("failed", run.error.message)
    assert (await ended(stack, other)).state == run_pb2.RUN_STATE_COMPLETED


@first_cases(1, "command", ["watch", "results", "cancel", "retry"])
async def test_unknown_run_is_not_found(stack: StackHarness, command: str) -> None:
    run_id = "00000000-0000-0000-0000-000000000000"
    end = await proctor(stack, f"{command} {run_id}")
    assert end.code == 4
    assert run_id in end.err
    if command != "watch":
        method = "GET" if command == "results" else "POST"
        answer = await http(stack, method, f"{API}/{command}/{run_id}")
        assert (answer.status, answer.body["detail"]) == (404, f"Benchmark job {run_id} not found")
