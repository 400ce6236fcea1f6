"""Two runs until decided: both ask one random order, stop once the test of their pairs decides, say so."""

import io
import json
import random

import pytest

from proctor.client.datasets import Upload
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2, sample_pb2
from proctor.values.comparison import sample_order
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
