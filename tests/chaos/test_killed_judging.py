"""`kill -9` of the scheduler while it makes the samples of a judging run: none is doubled, none lost."""

import pytest

from proctor.v1 import run_pb2
from tests.chaos.faults.stack_faults import kill
from tests.e2e.harness.run_ends import all_outcomes, completed, ended
from tests.fakes.eventually import eventually
from tests.harness.stack_harness import MODEL, StackHarness, keyed_order

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMIT_SECONDS = 240.0


async def test_verdicts_outlive_kills_while_their_samples_are_made(stack: StackHarness) -> None:
    judged = await completed(stack, keyed_order(), LIMIT_SECONDS)
    answers = await all_outcomes(stack, judged)
    judge = run_pb2.Judge(run_id=judged, prompt="correctness")
    run_id = await stack.submit(run_pb2.RunOrder(model=MODEL, judge=judge))
    for _ in range(2):

        async def is_making_samples() -> bool:
            run = await stack.client.run(run_id)
            return run.progress.phase == "planning correctness" or run.progress.total > 0

        await eventually(is_making_samples, "the samples are made", LIMIT_SECONDS)
        await kill(stack, "scheduler")
    run = await ended(stack, run_id, LIMIT_SECONDS)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    assert run.progress.total == len(answers)
    verdicts = await all_outcomes(stack, run_id)
    assert [verdict.row_id for verdict in verdicts] == [
        f"{answer.outcome.sample}.{answer.outcome.rollout}" for answer in answers
    ]
    assert {verdict.prediction for verdict in verdicts} == {"yes"}
    async with stack.database() as database:
        stored = await database.fetchval("SELECT count(*) FROM results.outcomes WHERE run_id = $1", run_id)
    assert stored == len(answers)
