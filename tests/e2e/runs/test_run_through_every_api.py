"""A run from order to figures, through REST, gRPC and the command line, and what Postgres holds of it."""

import json
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proctor.v1 import run_pb2
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.stack_harness import MODEL, StackHarness, StackOrder, keyed_order, stack_harness
from tests.harness.starter_model import SAMPLES
from tests.harness.starter_model import SUITE as STARTER

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 200
# The server answers by a hash, so that figures are neither 0 nor 1.
STARTER_ORDER = {
    "project_id": 3,
    "suite": "starter",
    "config": {"provider": "openai", "model": "fake", "params": {"temperature": 0}},
}

_FIGURES = """
SELECT task, count(*)::int AS n, avg(value) AS mean, stddev_samp(value) / sqrt(count(*)) AS stderr
FROM (
    SELECT tasks.task, (outcomes.scores ->> metric.name)::float AS value
    FROM results.outcomes AS outcomes
    JOIN results.run_tasks AS tasks USING (run_id, task_index)
    CROSS JOIN (VALUES ('acc'), ('exact_match')) AS metric (name)
    WHERE outcomes.run_id = $1 AND outcomes.scores ? metric.name
) AS scored
GROUP BY task
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack() -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, StackOrder(rows=ROWS, suites=(STARTER,))) as stack:
            yield stack


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def prompt_server(stack: StackHarness) -> None:
    await stack.model_server.control(fault=None, latency_seconds=0, reset_stats=True)


async def test_figures_are_the_same_by_rest_by_grpc_and_in_the_rows(stack: StackHarness) -> None:
    started = await http(stack, "POST", f"{API}/run", json=STARTER_ORDER)
    assert started.status == 200
    assert started.body["message"] == "Benchmarking started for suite: starter"
    run_id = str(uuid.UUID(started.body["job_id"]))
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED

    by_rest = (await http(stack, "GET", f"{API}/results/{run_id}")).body
    by_grpc = (await stack.client.results(run_id)).summary
    async with stack.database() as database:
        in_rows = {row["task"]: row for row in await database.fetch(_FIGURES, run_id)}
    assert (by_rest["status"], by_rest["failures"]) == ("completed", {})
    assert by_rest["progress"]["completed"] == by_rest["progress"]["total"] == by_grpc.total == SAMPLES
    assert by_rest["summary"]["total_samples"] == by_grpc.answered == SAMPLES
    assert by_rest["summary"]["benchmarks_run"] == [task.task for task in by_grpc.tasks]
    assert by_rest["unparsed"] == by_grpc.unparsed
    for task in by_grpc.tasks:
        [figure] = task.metrics
        shown = by_rest["performance_data"]["starter"][task.task][figure.metric]
        shown.pop("scoring_method", None)
        assert shown == {
            "mean": figure.mean,
            "std": figure.std,
            "stderr": figure.stderr,
            "ci95": [figure.ci_low, figure.ci_high],
            "n": figure.n,
        }
        row = in_rows[task.task]
        assert figure.n == row["n"]
        assert figure.mean == pytest.approx(row["mean"], abs=1e-12)
        assert figure.stderr == pytest.approx(row["stderr"], abs=1e-12)
    assert 0 < in_rows["sentiment"]["mean"] < 1


async def test_streamed_run_has_the_same_figures_and_the_time_to_the_first_token(
    stack: StackHarness,
) -> None:
    bodies, run_id = [], ""
    for stream in (False, True):
        await stack.model_server.control(reset_stats=True)
        started = await http(
            stack, "POST", f"{API}/run", json={**STARTER_ORDER, "limit": 20, "stream_answers": stream}
        )
        run_id = started.body["job_id"]
        assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED
        bodies.append((await http(stack, "GET", f"{API}/results/{run_id}")).body)
    whole, streamed = bodies
    assert streamed["performance_data"] == whole["performance_data"]
    assert set(whole["timing"]) == {"total_seconds", "tokens_per_second"}
    # Log-likelihoods are not streamed; the answers of the third task are.
    assert (streamed["timing"]["first_token_seconds"]["n"], streamed["timing"]["total_seconds"]["n"]) == (
        20,
        60,
    )
    shown = await proctor(stack, f"results {run_id}")
    assert "first token" in shown.out


async def test_the_same_order_twice_gives_the_same_figures(stack: StackHarness) -> None:
    order = run_pb2.RunOrder(project_id=1, suite="starter", model=MODEL, limit=40)
    summaries = [await stack.client.summary(await completed(stack, order)) for _ in range(2)]
    first, second = ([(task.task, list(task.metrics)) for task in summary.tasks] for summary in summaries)
    assert first == second


async def test_equal_samples_are_stored_once(stack: StackHarness) -> None:
    for _ in range(2):
        await completed(stack, keyed_order(limit=70))
    async with stack.database() as database:
        sizes = await database.fetch("SELECT count(*) AS size FROM results.samples GROUP BY sample_set_id")
    assert [row["size"] for row in sizes].count(70) == 1


async def test_every_rollout_of_a_sample_is_asked_and_recorded(stack: StackHarness) -> None:
    run_id = await completed(stack, keyed_order(limit=50, rollouts=3))
    outcomes = await all_outcomes(stack, run_id)
    keys = [(item.outcome.sample, item.outcome.rollout) for item in outcomes]
    assert keys == [(sample, rollout) for sample in range(50) for rollout in range(3)]
    assert (await stack.model_server.stats())["requests"] == 150
    [task] = (await stack.client.summary(run_id)).tasks
    assert (task.total, task.answered, task.metrics[0].n) == (150, 150, 50)


async def test_outcomes_say_what_was_asked_and_what_came_back(stack: StackHarness) -> None:
    run_id = await completed(stack, keyed_order(limit=3))
    outcomes = await all_outcomes(stack, run_id)
    assert [item.target for item in outcomes] == ["k0", "k1", "k2"]
    for item in outcomes:
        assert item.prompt.endswith(f"KEY={item.target}")
        assert item.outcome.answer.text.strip() == f"The answer is {item.target}."
        assert (item.prediction, dict(item.scores)) == (item.target, {"exact_match": 1.0})
        assert item.outcome.usage.completion_tokens > 0
        assert len(item.digest) == 32


async def test_figures_are_partial_while_a_run_goes_on(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=1)
    run_id = await stack.submit()
    path = f"{API}/results/{run_id}"

    async def shows_some() -> bool:
        return bool((await http(stack, "GET", path)).body["summary"]["total_samples"])

    await eventually(shows_some, "the results of a running job show answers")
    partial = (await http(stack, "GET", path)).body
    assert partial["status"] == "running"
    assert 0 < partial["progress"]["percent"] < 100
    assert partial["performance_data"]["keyed"]["echo_key"]["exact_match"]["mean"] == 1.0
    assert partial["completed_at"] is None
    await stack.model_server.control(latency_seconds=0)
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED


async def test_cancel_and_retry_by_rest(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=30)
    run_id = await stack.submit()
    cancelled = await http(stack, "POST", f"{API}/cancel/{run_id}")
    assert (cancelled.status, cancelled.body["message"]) == (200, f"Job {run_id} cancelled successfully")
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_CANCELLED
    again = await http(stack, "POST", f"{API}/cancel/{run_id}")
    assert (again.status, again.body["reason"]) == (409, "RUN_ALREADY_FINISHED")
    await stack.model_server.control(latency_seconds=0)
    assert (await http(stack, "POST", f"{API}/retry/{run_id}")).status == 200
    assert (await ended(stack, run_id)).state == run_pb2.RUN_STATE_COMPLETED
    listed = (await http(stack, "GET", f"{API}/results?suite=keyed&limit=1")).body
    assert (listed["results"][0]["job_id"], listed["results"][0]["status"]) == (run_id, "completed")
    assert listed["total"] > 1
    assert listed["next_cursor"]


async def test_command_line_runs_and_reports_as_json(stack: StackHarness) -> None:
    ran = await proctor(stack, "run --suite keyed --model openai/fake --limit 20 --json")
    assert ran.code == 0, ran.err
    run_id = ran.document["run"]["run_id"]
    assert ran.document["run"]["state"] == "completed"
    assert ran.document["summary"]["tasks"][0]["metrics"][0]["mean"] == 1.0
    watched = await proctor(stack, f"watch {run_id} --json")
    assert (watched.code, watched.document) == (0, ran.document)
    shown = await proctor(stack, f"results {run_id} --outcomes --page-size 5 --json")
    assert shown.document["summary"] == ran.document["summary"]
    assert [item["prediction"] for item in shown.document["outcomes"]] == [f"k{n}" for n in range(5)]
    listed = await proctor(stack, "runs --suite keyed --page-size 1 --json")
    assert [run["run_id"] for run in listed.document["runs"]] == [run_id]


@pytest.mark.thorough
async def test_command_line_prints_what_there_is_as_json(stack: StackHarness) -> None:
    suites = (await proctor(stack, "suites --json")).document["suites"]
    assert [suite["suite"] for suite in suites] == ["keyed", "starter"]
    assert (await proctor(stack, "models --json")).code == 0
    status = (await proctor(stack, "status --json")).document
    assert [worker["pool"] for worker in status["workers"]] == ["remote"]


@pytest.mark.thorough
async def test_command_line_cancels_and_retries(stack: StackHarness) -> None:
    await stack.model_server.control(latency_seconds=30)
    order = "run --suite keyed --model openai/fake --limit 20 --detach --json"
    run_id = (await proctor(stack, order)).document["run"]["run_id"]
    assert (await proctor(stack, f"cancel {run_id}")).code == 0
    assert (await proctor(stack, f"watch {run_id}")).code == 5
    await stack.model_server.control(latency_seconds=0)
    retried = await proctor(stack, f"retry {run_id} --json")
    assert (retried.code, retried.document["run"]["epoch"]) == (0, 2)
    assert (await proctor(stack, f"watch {run_id} --json")).code == 0


async def test_tables_name_the_figures(stack: StackHarness) -> None:
    shown = await proctor(stack, "run --suite keyed --model openai/fake --limit 10")
    assert shown.code == 0, shown.err
    assert "exact_match" in shown.out
    assert "proctor results" in shown.out


async def test_environment_says_what_is_needed_to_repeat_a_run(stack: StackHarness) -> None:
    run_id = await completed(stack, keyed_order(limit=5))
    run = await stack.client.run(run_id)
    reported = json.dumps(dict(run.environment))
    for word in ("proctor", "definition", "sha256", "engine"):
        assert word in reported, reported
