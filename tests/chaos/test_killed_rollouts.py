"""Rollouts under `kill -9` of the processes around them: each is judged once; cancelling leaves nothing."""

import json
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from proctor.v1 import outcome_pb2, rollout_pb2, run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.chaos.faults.stack_faults import PRICE, keep_away, kill
from tests.e2e.harness.run_ends import all_outcomes, ended
from tests.fakes.eventually import eventually
from tests.harness.rollout_orders import MEND, SPOIL, harbor_tasks, rollouts_order
from tests.harness.stack_harness import StackHarness

pytestmark = pytest.mark.asyncio(loop_scope="session")

# `PROCTOR_CHAOS_ROLLOUTS=67` is 201 rollouts and a kill for every 20 of them: figures, not for every change.
ROLLOUTS = int(os.environ.get("PROCTOR_CHAOS_ROLLOUTS", "4"))
LIMIT_SECONDS = 150.0 if ROLLOUTS <= 6 else 900.0
# More than an answer has, prompt included.
MOST_TOKENS = 2000
MAX_COST = 10.0
# Not in any other test, nor on the machine.
LONG = "sleep 86399"


async def ledger(stack: StackHarness, run_id: str) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Executions of each rollout, as they began, with the tokens that their workers have reported."""
    query = (
        "SELECT sample, rollout, execution, usage FROM scheduler.rollout_budgets WHERE run_id = $1"
        " ORDER BY started_at, execution"
    )
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    async with stack.database() as connection:
        for row in await connection.fetch(query, run_id):
            usage = json.loads(row["usage"])
            used = usage["prompt_tokens"] + usage["completion_tokens"]
            found.setdefault((row["sample"], row["rollout"]), []).append((row["execution"], used))
    return found


async def assert_tokens_are_counted(
    stack: StackHarness, run: run_pb2.Run, outcomes: Sequence[outcome_pb2.RecordedOutcome]
) -> None:
    """Those of an outcome are those of its execution and of all that began before it."""
    executions, lost = await ledger(stack, run.run_id), 0
    for outcome in outcomes:
        own = executions[outcome.doc_id, outcome.outcome.rollout]
        judged = json.loads(outcome.outcome.answer.body_json)["execution"]
        index = [execution for execution, _ in own].index(judged)
        assert tokens_of(outcome.outcome.usage) == sum(used for _, used in own[: index + 1])
        lost += len(own) - 1
    counted = tokens_of(run.progress.usage)
    assert counted == sum(tokens_of(outcome.outcome.usage) for outcome in outcomes)
    assert run.price.input_per_million == run.price.output_per_million == PRICE
    assert run.progress.cost == pytest.approx(counted * PRICE / 1e6)
    # A killed worker does not know the answers of requests in flight, one of each of its rollouts.
    served = (await stack.model_server.stats())["tokens"]
    assert 0 <= served - counted <= lost * MOST_TOKENS


def tokens_of(usage: outcome_pb2.TokenUsage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


async def recorded(stack: StackHarness, run_id: str) -> int:
    async with stack.database() as connection:
        query = "SELECT coalesce(sum(recorded), 0)::bigint FROM results.task_counts WHERE run_id = $1::uuid"
        return int(await connection.fetchval(query, run_id))


# The seed is in the test's name, so that a failure can be repeated.
@pytest.mark.timeout(2 * LIMIT_SECONDS)
@pytest.mark.parametrize("seed", [3])
async def test_each_rollout_is_judged_once_under_kills(
    stack: StackHarness, tmp_path: Path, seed: int
) -> None:
    tasks = harbor_tasks(tmp_path, {"mended": MEND, "slow": f"{MEND}DO sleep 1\n", "spoiled": SPOIL})
    order = rollouts_order("killed", tasks, rollouts=ROLLOUTS, max_cost=MAX_COST)
    ordered = await stack.client.rollouts.SubmitRollouts(order)
    run_id, total = ordered.runs[0].run_id, 3 * ROLLOUTS
    await stack.model_server.control(reset_stats=True)
    names = ["worker", *random.Random(seed).sample(["results", "scheduler", "nats"], k=2), "worker"]
    if total > 20:
        killed = ["worker", "worker", "results", "scheduler", "nats"]
        names = random.Random(seed).choices(killed, k=total // 20)
    for part, name in enumerate(names, 1):
        minimum = part * total // (len(names) + 2)

        async def is_reached(minimum: int = minimum) -> bool:
            return await recorded(stack, run_id) >= minimum

        await eventually(is_reached, f"{minimum} rollouts are judged", LIMIT_SECONDS)
        await kill(stack, name)
    run = await ended(stack, run_id, LIMIT_SECONDS)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    outcomes = await all_outcomes(stack, run_id)
    keys = Counter((outcome.doc_id, outcome.outcome.rollout) for outcome in outcomes)
    assert keys == {(task, rollout): 1 for task in range(3) for rollout in range(ROLLOUTS)}
    assert {(outcome.doc_id, outcome.scores["reward"]) for outcome in outcomes} == {(0, 1), (1, 1), (2, 0)}
    assert await recorded(stack, run_id) == total
    await assert_tokens_are_counted(stack, run, outcomes)


def is_executed(command: str) -> bool:
    """By any process of the machine; those of sandboxes are seen from outside."""
    wanted = command.replace(" ", "\0").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(wanted):
                return True
        except OSError:
            continue
    return False


async def test_a_cancelled_rollout_leaves_no_process(stack: StackHarness, tmp_path: Path) -> None:
    tasks = harbor_tasks(tmp_path, {"long": f"Wait.\nDO echo go\nDO {LONG}\n"})
    ordered = await stack.client.rollouts.SubmitRollouts(rollouts_order("cancelled", tasks))
    await eventually(lambda: is_executed(LONG), "the command runs", 60)
    await stack.client.runs.CancelRun(scheduler_pb2.CancelRunRequest(run_id=ordered.runs[0].run_id))
    await eventually(lambda: not is_executed(LONG), "its sandbox is closed", 10)
    run = await ended(stack, ordered.runs[0].run_id)
    assert run.state == run_pb2.RUN_STATE_CANCELLED
    # The tokens of both answers, though there is no outcome: its worker said so when it broke off.
    async with stack.database() as connection:
        query = "SELECT agent_steps, usage, is_left FROM scheduler.rollout_budgets WHERE run_id = $1"
        [(steps, usage, is_left)] = await connection.fetch(query, ordered.runs[0].run_id)
    assert (steps, is_left, run.progress.recorded) == (2, True, 0)
    assert run.progress.usage.completion_tokens == json.loads(usage)["completion_tokens"] > 0


async def steps_begun(stack: StackHarness, run_id: str) -> list[int]:
    """Of each execution, by its epoch and beginning."""
    async with stack.database() as connection:
        query = (
            "SELECT agent_steps FROM scheduler.rollout_budgets WHERE run_id = $1 ORDER BY epoch, started_at"
        )
        return [row["agent_steps"] for row in await connection.fetch(query, run_id)]


async def test_a_killed_worker_gives_a_rollout_no_second_budget(stack: StackHarness, tmp_path: Path) -> None:
    tasks = harbor_tasks(tmp_path, {"long": MEND + "DO sleep 1\n" * 3})
    agent = rollout_pb2.RolloutAgent(max_steps=6)
    await stack.model_server.control(reset_stats=True)
    ordered = await stack.client.rollouts.SubmitRollouts(rollouts_order("budgeted", tasks, agent=agent))
    run_id = ordered.runs[0].run_id

    async def is_under_way() -> bool:
        return any(steps >= 3 for steps in await steps_begun(stack, run_id))

    await eventually(is_under_way, "three steps are begun", 60)
    await kill(stack, "worker")
    run = await ended(stack, run_id, LIMIT_SECONDS)
    assert run.state == run_pb2.RUN_STATE_FAILED, run.error
    [lost, rest] = await steps_begun(stack, run_id)
    assert 3 <= lost <= 5
    # What was recorded of the second is the step that it did not begin.
    assert lost + rest == agent.max_steps + 1
    assert (await stack.model_server.stats())["requests"] <= agent.max_steps
    [outcome] = await all_outcomes(stack, run_id)
    assert outcome.outcome.failure.failure_class == outcome_pb2.FAILURE_CLASS_SANDBOX
    assert "used up its steps" in outcome.outcome.failure.message
    await stack.client.runs.RetryRun(scheduler_pb2.RetryRunRequest(run_id=run_id))
    run = await ended(stack, run_id, LIMIT_SECONDS)
    [outcome] = await all_outcomes(stack, run_id)
    assert (outcome.outcome.answer.finish_reason, outcome.scores["reward"]) == ("submitted", 1.0)


@pytest.mark.thorough
async def test_rollouts_wait_for_a_scheduler_that_is_away(stack: StackHarness, tmp_path: Path) -> None:
    """None begins anew: its budget is what one execution takes."""
    tasks = harbor_tasks(tmp_path, {"long": MEND + "DO sleep 1\n" * 3})
    agent = rollout_pb2.RolloutAgent(max_steps=6)
    await stack.model_server.control(reset_stats=True)
    order = rollouts_order("waiting", tasks, agent=agent, rollouts=3)
    run_id = (await stack.client.rollouts.SubmitRollouts(order)).runs[0].run_id

    async def are_under_way() -> bool:
        return len(await steps_begun(stack, run_id)) == 3

    await eventually(are_under_way, "each rollout has begun", 60)
    await keep_away(stack, "scheduler", 14)
    run = await ended(stack, run_id, LIMIT_SECONDS)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    outcomes = await all_outcomes(stack, run_id)
    assert sorted(each.outcome.rollout for each in outcomes) == list(range(3))
    assert {(each.outcome.answer.finish_reason, each.scores["reward"]) for each in outcomes} == {
        ("submitted", 1.0)
    }
    assert await steps_begun(stack, run_id) == [agent.max_steps] * 3
    assert (await stack.model_server.stats())["requests"] == 3 * agent.max_steps


@pytest.mark.thorough
async def test_a_paused_run_goes_on_where_it_was(stack: StackHarness, tmp_path: Path) -> None:
    tasks = harbor_tasks(tmp_path, {"slow": f"{MEND}DO sleep 1\n"})
    order = rollouts_order("paused", tasks, rollouts=4, parallel=2)
    run_id = (await stack.client.rollouts.SubmitRollouts(order)).runs[0].run_id

    async def is_begun() -> bool:
        return await recorded(stack, run_id) >= 1

    await eventually(is_begun, "the first rollout is judged", 60)
    assert (
        (await stack.client.runs.PauseRun(scheduler_pb2.PauseRunRequest(run_id=run_id))).run
    ).state == run_pb2.RUN_STATE_PAUSED
    await kill(stack, "worker")
    assert await recorded(stack, run_id) < 4
    await stack.client.runs.ResumeRun(scheduler_pb2.ResumeRunRequest(run_id=run_id))
    run = await ended(stack, run_id, LIMIT_SECONDS)
    assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error
    outcomes = await all_outcomes(stack, run_id)
    assert sorted(each.outcome.rollout for each in outcomes) == list(range(4))
    assert {each.scores["reward"] for each in outcomes} == {1.0}
