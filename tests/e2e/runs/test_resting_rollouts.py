"""A provider that only answers 429 holds no slot of others, and its rollouts go on where they were."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from proctor.v1 import rollout_pb2, run_pb2
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.fakes.worker.task_program import program_command
from tests.harness.rollout_orders import MEND, harbor_tasks, rollouts_order
from tests.harness.rollout_tasks import RIGHT
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, stack_harness

pytestmark = pytest.mark.asyncio(loop_scope="session")

# So few that rollouts of one run hold them all.
SLOTS = 2

AGENTS = {
    "shell": rollout_pb2.RolloutAgent(),
    "program": rollout_pb2.RolloutAgent(
        kind=rollout_pb2.AGENT_KIND_COMMAND, command=program_command(), environment={"TOKEN": "{token}"}
    ),
    "same": rollout_pb2.RolloutAgent(verification=rollout_pb2.VERIFICATION_PLACE_SAME),
}
# The second request of each rollout has what this prints, and no other request has it.
PRINTS = "echo LIM''ITED"
FAULT = {"kind": "status", "status": 429, "text": "LIMITED"}
_ESCAPED = RIGHT.encode("unicode_escape").decode()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stack() -> AsyncIterator[StackHarness]:
    environment = {**SHORT_TIMEOUTS, "PROCTOR_WORKER_ROLLOUT_SLOTS": str(SLOTS)}
    order = StackOrder(models=("fake", "other"), environment=environment)
    with temporary_state_dir() as state_dir:
        async with stack_harness(state_dir.parent, order) as stack:
            yield stack


@first_cases(1, "agent", AGENTS)
async def test_rollouts_of_a_limited_model_rest_while_others_are_judged(
    stack: StackHarness, tmp_path: Path, agent: str
) -> None:
    instruction = f"Mend it.\nDO printf '{_ESCAPED}' > doubling.py; {PRINTS}\nDO cat doubling.py\n"
    limited_tasks = harbor_tasks(tmp_path / "limited", {"limited": instruction})
    others_tasks = harbor_tasks(tmp_path / "others", {"free": MEND})
    await stack.model_server.control(fault=FAULT)
    try:
        limited = await stack.client.rollouts.SubmitRollouts(
            rollouts_order(f"limited-{agent}", limited_tasks, rollouts=SLOTS, agent=AGENTS[agent])
        )
        run_id = limited.runs[0].run_id

        async def do_all_wait() -> bool:
            async with stack.database() as connection:
                query = (
                    "SELECT count(*) FROM scheduler.rollout_budgets WHERE run_id = $1 AND agent_steps >= 2"
                )
                return bool(await connection.fetchval(query, run_id) >= SLOTS)

        await eventually(do_all_wait, "each slot has a rollout that waits", 120)
        order = rollouts_order(f"unlimited-{agent}", others_tasks, rollouts=2)
        order.models[:] = ["openai/other"]
        others = await stack.client.rollouts.SubmitRollouts(order)
        run = await ended(stack, others.runs[0].run_id, 300)
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
        assert (await stack.client.run(run_id)).progress.recorded == 0
    finally:
        await stack.model_server.control(fault=None)
    run = await ended(stack, run_id, 300)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    outcomes = await all_outcomes(stack, run_id)
    # What was made before the rest is there after it.
    assert [outcome.scores["reward"] for outcome in outcomes] == [1.0] * SLOTS
    records = [json.loads(outcome.outcome.answer.body_json) for outcome in outcomes]
    assert {record["budget"]["steps"] for record in records} == {3}
    assert not any("lost_executions" in record["budget"] for record in records)


@pytest.mark.thorough
async def test_a_program_without_an_answer_begins_anew_and_holds_no_place_of_its_group(
    stack: StackHarness, tmp_path: Path
) -> None:
    """The provider of one run answers nothing but 429; another run of its group is not held up."""
    tasks = harbor_tasks(tmp_path, {"mended": MEND})
    await stack.model_server.control(fault={"kind": "status", "status": 429, "text": "'model': 'fake'"})
    try:
        order = rollouts_order("grouped", tasks, rollouts=2, agent=AGENTS["program"], parallel=2)
        order.parallel_group = "resting"
        run_id = (await stack.client.rollouts.SubmitRollouts(order)).runs[0].run_id

        async def do_all_rest() -> bool:
            async with stack.database() as connection:
                query = "SELECT count(*) FROM scheduler.shards WHERE run_id = $1 AND is_resting"
                return bool(await connection.fetchval(query, run_id) == 2)

        await eventually(do_all_rest, "both rollouts rest", 120)
        order = rollouts_order("grouped-other", tasks, rollouts=2, parallel=2)
        order.parallel_group, order.models[:] = "resting", ["openai/other"]
        other = (await stack.client.rollouts.SubmitRollouts(order)).runs[0]
        run = await ended(stack, other.run_id, 300)
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
        assert (await stack.client.run(run_id)).progress.recorded == 0
    finally:
        await stack.model_server.control(fault=None)
    run = await ended(stack, run_id, 300)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    outcomes = await all_outcomes(stack, run_id)
    assert [outcome.scores["reward"] for outcome in outcomes] == [1.0] * 2
    records = [json.loads(outcome.outcome.answer.body_json) for outcome in outcomes]
    assert {record["budget"]["steps"] for record in records} == {3}
    assert not any("lost_executions" in record["budget"] for record in records)
