"""Two runs until decided: both ask one random order, stop once the test of their pairs decides, say so."""

import html
import io
import json
import random
from uuid import uuid4

import aiohttp
import pytest

from proctor.client.datasets import Upload
from proctor.client.errors import Refused
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2, sample_pb2
from proctor.values.comparison import sample_order
from proctor.wire.decisions import decision_sentence
from services.gateway.http.paths import DATASET_RUNS as DATASET_API
from tests.e2e.harness.entry_points import http
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

OTHER = "openai/other"
ROWS, WON = 4000, 0.1


async def upload(stack: StackHarness, rows: int = ROWS, won: float = WON) -> str:
    """Of a share of the rows only the fake model says the target; both say that of seven tenths."""
    draw = random.Random(3)
    lines = []
    for number in range(rows):
        kind = draw.random()
        key, target = (
            ("WHO", "fake") if kind < won else (f"w{number}", f"w{number}" if kind < 0.8 else "none")
        )
        lines.append(json.dumps({"prompt": f"Say {number}. KEY={key}", "target": target}))
    file = io.BytesIO("\n".join(lines).encode())
    return (await stack.client.upload_dataset(Upload(file, "decided.jsonl"))).dataset.dataset_id


def decided_order(dataset_id: str, margin_points: float | None = None) -> run_pb2.RunOrder:
    return run_pb2.RunOrder(
        dataset_id=dataset_id,
        model=MODEL,
        metrics=[sample_pb2.MetricUse(name="contains")],
        until_decided=run_pb2.UntilDecided(against_model=OTHER, margin_points=margin_points),
    )


async def test_both_runs_stop_once_they_are_decided_between(stack: StackHarness) -> None:
    dataset_id = await upload(stack)
    first = await ended(stack, await stack.submit(decided_order(dataset_id)))
    base = await ended(stack, first.order.until_decided.against_run_id)
    assert (first.order.model, base.order.model) == (MODEL, OTHER)
    assert base.order.until_decided.against_run_id == first.run_id
    assert (first.order.until_decided.is_base, base.order.until_decided.is_base) == (False, True)
    assert first.order.until_decided.seed == base.order.until_decided.seed
    for run in (first, base):
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
        assert 0 < run.progress.recorded < ROWS
    assert first.decision == base.decision
    decision = first.decision
    assert decision.verdict == run_pb2.DECISION_VERDICT_BETTER
    assert 0 < decision.low < decision.difference < decision.high
    # The pairs are the first ones of the order, whatever came in beside them.
    order = sample_order(first.order.until_decided.seed, ROWS)[: decision.pairs]
    for run in (first, base):
        asked = {outcome.outcome.sample for outcome in await all_outcomes(stack, run.run_id)}
        assert asked.issuperset(order)
        summary = (
            await stack.client.outcomes.GetSummary(results_pb2.GetSummaryRequest(run_id=run.run_id))
        ).summary
        assert summary.is_partial
        assert summary.decision == decision


async def test_equal_models_are_equivalent_by_rest_and_the_pages_say_so(stack: StackHarness) -> None:
    dataset_id = await upload(stack, rows=1500, won=0.0)
    body = {
        "model_id": MODEL,
        "dataset_id": dataset_id,
        "metrics": ["contains"],
        "until_decided": {"against_model": OTHER, "margin_points": 5},
    }
    headers = {"Idempotency-Key": str(uuid4())}
    path = f"{DATASET_API}/run"
    started = [await http(stack, "POST", path, json=body, headers=headers) for _ in range(2)]
    assert [answer.status for answer in started] == [200, 200], started[0].body
    assert started[0].body["benchmark_id"] == started[1].body["benchmark_id"]
    run = await ended(stack, started[0].body["benchmark_id"].removeprefix("bm_"))
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    status = (await http(stack, "GET", f"{DATASET_API}/{started[0].body['benchmark_id']}")).body
    shown = status["stopped_early"]
    assert (shown["verdict"], shown["difference"], shown["margin_points"]) == ("equivalent", 0.0, 5.0)
    assert -0.05 < shown["low"] < 0 < shown["high"] < 0.05
    assert shown["against_job_id"] == run.order.until_decided.against_run_id
    assert status["order"]["until_decided"] == {"against_model": OTHER, "margin_points": 5.0, "alpha": 0.05}
    sentence = decision_sentence(run)
    assert f"{MODEL} and {OTHER} differ by less than 5 points" in sentence
    for run_id in (run.run_id, run.order.until_decided.against_run_id):
        await ended(stack, run_id)
        assert sentence in html.unescape(await page(stack, f"/runs/{run_id}"))


async def page(stack: StackHarness, path: str) -> str:
    url = f"http://{stack.stack.gateway_http}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 200
        return await response.text()


async def test_an_order_that_pairs_cannot_decide_is_refused_at_its_field(stack: StackHarness) -> None:
    order = decided_order(await upload(stack, rows=10))
    order.metrics[0].name = "bleu"
    with pytest.raises(Refused) as refused:
        await stack.submit(order)
    assert refused.value.facts["field"] == "order.until_decided"
    assert "bleu" in refused.value.message
