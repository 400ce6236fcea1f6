"""`kill -9` around the decision between two runs: it is made once, both stop by it, no answer is lost."""

import pytest

from proctor.v1 import run_pb2
from proctor.values.comparison import sample_order
from tests.chaos.faults.stack_faults import kill
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.e2e.scoring.test_decided_runs import OTHER, ROWS, decided_order, upload
from tests.fakes.eventually import eventually
from tests.fakes.thorough_cases import first_cases
from tests.harness.stack_harness import MODEL, StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT_SECONDS = 240.0


async def decisions(stack: StackHarness, run_ids: list[str]) -> list[str]:
    async with stack.database() as database:
        rows = await database.fetch(
            "SELECT decision::text FROM results.run_decisions WHERE run_id = ANY ($1::uuid[])", run_ids
        )
    return [row["decision"] for row in rows]


@first_cases(1, "name", ["scheduler", "results", "worker"])
async def test_two_runs_stop_by_one_decision_whatever_is_killed_when_it_is_made(
    stack: StackHarness, name: str
) -> None:
    dataset_id = await upload(stack)
    first_id = await stack.submit(decided_order(dataset_id))
    run = await stack.client.run(first_id)
    both = [first_id, run.order.until_decided.against_run_id]

    async def has_answers() -> bool:
        return (await stack.client.run(first_id)).progress.recorded > 0

    await eventually(has_answers, "the first answers are in", LIMIT_SECONDS)
    await kill(stack, name)

    async def is_decided() -> bool:
        return bool(await decisions(stack, both))

    await eventually(is_decided, "the runs are decided between", LIMIT_SECONDS)
    # Between the decision and the end of the runs: the leader may have stopped none, one or both.
    await kill(stack, name)
    ends = [await ended(stack, run_id, LIMIT_SECONDS) for run_id in both]
    stored = await decisions(stack, both)
    assert len(stored) == 2
    assert stored[0] == stored[1]
    decision = ends[0].decision
    assert ends[1].decision == decision
    assert decision.verdict == run_pb2.DECISION_VERDICT_BETTER
    order = sample_order(run.order.until_decided.seed, ROWS)[: decision.pairs + decision.failed]
    right = []
    for end, model in zip(ends, (MODEL, OTHER), strict=True):
        assert (end.order.model, end.state) == (model, run_pb2.RUN_STATE_COMPLETED), end.error
        outcomes = await all_outcomes(stack, end.run_id)
        assert len(outcomes) == end.progress.recorded < ROWS
        scores = {each.outcome.sample: each.scores.get("contains") for each in outcomes}
        assert len(scores) == len(outcomes)
        right.append([scores[sample] for sample in order])
    # The stored difference is that of the answers that are kept.
    pairs = [(one, other) for one, other in zip(*right, strict=True) if None not in (one, other)]
    assert len(pairs) == decision.pairs
    difference = sum((one or 0) - (other or 0) for one, other in pairs) / len(pairs)
    assert difference == pytest.approx(decision.difference)
