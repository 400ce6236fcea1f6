"""Cost of a run: estimated before, shown after, and limited where the order sets a limit."""

from collections.abc import AsyncIterator
from os import utime
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from proctor.client import errors as client_errors
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.e2e.harness.agent import Refusal, agent
from tests.e2e.harness.entry_points import API, http, proctor
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.keyed_suite import SUITE
from tests.harness.stack_harness import (
    MODEL,
    SHORT_TIMEOUTS,
    StackHarness,
    StackOrder,
    keyed_order,
    stack_harness,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROWS = 400
MAX_SHARD = 64
PRICES = "currency: EUR\nprices:\n  openai/fa*: {{input: {input}, output: 10, cached_input: 1}}\n"
PRICE = run_pb2.ModelPrice(
    input_per_million=2, output_per_million=10, cached_input_per_million=1, currency="EUR"
)


@pytest.fixture(scope="module")
def prices_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("prices") / "prices.yaml"
    file.write_text(PRICES.format(input=2))
    return file


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(prices_file: Path) -> AsyncIterator[StackHarness]:
    with temporary_state_dir() as state_dir:
        order = StackOrder(
            rows=ROWS,
            models=("fake", "dear"),
            environment={**SHORT_TIMEOUTS, "PROCTOR_SCHEDULER_PRICES_FILE": str(prices_file)},
        )
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


async def recorded_usage(stack: StackHarness, run_id: str) -> outcome_pb2.TokenUsage:
    """Summed up from the answers, one by one."""
    used = [listed.outcome.usage for listed in await all_outcomes(stack, run_id)]
    return outcome_pb2.TokenUsage(
        prompt_tokens=sum(usage.prompt_tokens for usage in used),
        completion_tokens=sum(usage.completion_tokens for usage in used),
    )


def cost_of(usage: outcome_pb2.TokenUsage) -> float:
    return (2 * usage.prompt_tokens + 10 * usage.completion_tokens) / 1e6


async def test_cost_is_usage_times_price_at_every_api_and_reported_before_the_next_run(
    stack: StackHarness, tmp_path: Path
) -> None:
    first = await stack.client.runs.SubmitRun(scheduler_pb2.SubmitRunRequest(order=keyed_order()))
    assert not first.HasField("estimated_cost")
    run = await ended(stack, first.run.run_id)
    assert (run.state, run.price) == (run_pb2.RUN_STATE_COMPLETED, PRICE)
    usage = await recorded_usage(stack, run.run_id)
    cost = pytest.approx(cost_of(usage))
    summary = await stack.client.summary(run.run_id)
    assert (summary.usage, summary.price) == (usage, PRICE)
    assert summary.cost == cost
    assert run.progress.usage == usage
    assert run.progress.cost == cost

    by_rest = (await http(stack, "GET", f"{API}/results/{run.run_id}")).body
    assert (by_rest["cost"], by_rest["currency"]) == (cost, "EUR")
    assert by_rest["usage"]["prompt_tokens"] == usage.prompt_tokens
    shown = await proctor(stack, f"results {run.run_id}")
    assert f"Cost: {summary.cost:.6g} EUR" in shown.out
    exported = await http(stack, "GET", f"{API}/results/{run.run_id}/export?format=json")
    assert exported.body["summary"]["cost"] == cost
    page = tmp_path / "report.html"
    await proctor(stack, f"export {run.run_id} --format html -o {page}")
    assert f"<tr><th>cost</th><td>{summary.cost:.6g} EUR</td></tr>" in page.read_text()

    body = {"project_id": 1, "suite": "keyed", "config": {"provider": "openai", "model": "fake"}}
    estimated = (await http(stack, "POST", f"{API}/estimate", json=body)).body
    assert (estimated["estimated_cost"], estimated["currency"]) == (cost, "EUR")
    assert estimated["estimated_seconds"]
    started = (await http(stack, "POST", f"{API}/run", json=body)).body
    assert (started["estimated_cost"], started["currency"]) == (cost, "EUR")
    await ended(stack, started["job_id"])


async def test_a_run_stops_at_its_cost_limit_and_keeps_what_it_has(stack: StackHarness) -> None:
    whole = await stack.client.summary(await completed(stack, keyed_order()))
    limit = whole.cost / 2
    run_id = await stack.submit(keyed_order(max_cost=limit))
    run = await ended(stack, run_id)
    assert (run.state, run.error.reason) == (run_pb2.RUN_STATE_FAILED, "COST_LIMIT_REACHED")
    said = "Resource limits exceeded (cost): the run has reached its max_cost of "
    assert run.error.message.startswith(said)

    summary = await stack.client.summary(run_id)
    usage = await recorded_usage(stack, run_id)
    assert (summary.is_partial, summary.usage) == (True, usage)
    assert summary.cost == pytest.approx(cost_of(usage))
    most_beyond = (MAX_SHARD + 1) * whole.cost / whole.answered
    assert limit <= summary.cost <= limit + most_beyond

    async def is_let_go() -> bool:
        return bool((await stack.model_server.stats())["in_flight"] == 0)

    await eventually(is_let_go, "no request is in flight")
    by_rest = (await http(stack, "GET", f"{API}/results/{run_id}")).body
    assert by_rest["error"] == f"Job execution failed: {run.error.message}"
    retried = await http(stack, "POST", f"{API}/retry/{run_id}")
    assert (retried.status, retried.body["reason"]) == (409, "COST_LIMIT_REACHED")


async def test_a_limit_without_a_price_is_refused(stack: StackHarness) -> None:
    with pytest.raises(client_errors.Refused, match="No price is known of openai/dear") as raised:
        await stack.submit(keyed_order(model="openai/dear", max_cost=1.0))
    assert raised.value.reason == "NO_PRICE"
    assert isinstance(raised.value.__cause__, grpc.aio.AioRpcError)
    assert raised.value.__cause__.code() == grpc.StatusCode.FAILED_PRECONDITION
    ended_badly = await proctor(stack, "run --suite keyed --model openai/dear --max-cost 1")
    assert (ended_badly.code, "No price is known of openai/dear" in ended_badly.err) == (2, True)


async def test_a_run_has_the_price_of_the_moment_it_was_ordered(
    stack: StackHarness, prices_file: Path
) -> None:
    before = await completed(stack, keyed_order(limit=5))
    prices_file.write_text(PRICES.format(input=3))
    later = prices_file.stat().st_mtime_ns + 10**9
    utime(prices_file, ns=(later, later))
    after = await completed(stack, keyed_order(limit=5))
    prices = [(await stack.client.summary(run_id)).price for run_id in (before, after)]
    assert [price.input_per_million for price in prices] == [2, 3]


async def test_an_agent_names_a_limit_of_cost_above_the_estimate(stack: StackHarness) -> None:
    order = {"model": MODEL, "suite": SUITE}
    whole = await stack.client.summary(await completed(stack, keyed_order()))
    async with agent(stack) as one:
        estimated = await one.call("estimate_run", order=order)
        assert estimated["estimated_cost"] == pytest.approx(whole.cost)
        with pytest.raises(Refusal, match="set max_cost, in EUR"):
            await one.call("order_run", order=order)
        with pytest.raises(Refusal, match="more than max_cost"):
            await one.call("order_run", order=order, max_cost=whole.cost / 2)
        run = await one.call("order_run", order=order, max_cost=whole.cost * 2)
    assert (await ended(stack, run["run_id"])).order.max_cost == whole.cost * 2
