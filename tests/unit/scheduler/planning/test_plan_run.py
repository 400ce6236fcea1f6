"""Planning: sample sets, shards, and what stops it."""

import asyncio
import json
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.rollout import AgentKind
from proctor.values.run import RunState
from proctor.values.scoring import INSTRUCTION_VERSION, OutputType, PromptForm, ScoringMethod, TaskScoring
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.planning.grpc_results import task_to_proto
from services.scheduler.planning.plan_run import PlanningFailed, RunStopped
from services.scheduler.planning.ports import TaskToOpen
from services.scheduler.runs.orders.run_order import params_for
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.suites.toy_suites import ToyRows


async def test_tasks_own_ranges_that_follow_each_other() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start(toy_order(limit=70))
    await harness.tools.planner.plan(harness.fencing_token, run)
    tasks = await harness.runs.planned_tasks(run.run_id)
    assert [(task.task, task.first_sample, task.sample_count) for task in tasks] == [
        ("choose", 0, 70),
        ("say", 70, 70),
    ]
    planned = await harness.runs.get(run.run_id)
    assert (planned.total, planned.planned_epoch) == (140, 1)
    shards = await harness.runs.planned(planned, -1, 100)
    assert [(shard.samples[0], shard.size) for shard in shards] == [(0, 64), (64, 6), (70, 64), (134, 6)]


async def test_only_ordered_tasks_are_planned_in_the_order_asked() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start(toy_order(tasks=("say", "choose")))
    await harness.tools.planner.plan(harness.fencing_token, run)
    assert [task.task for task in await harness.runs.planned_tasks(run.run_id)] == ["say", "choose"]


async def test_same_order_gives_the_same_sample_sets() -> None:
    harness = SchedulerHarness()
    for _ in range(2):
        run, _ = await harness.start()
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert len(harness.record.sets) == 2


async def test_run_cancelled_in_planning_is_not_planned_to_the_end() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.changing.cancel(run.run_id, OPERATOR)
    with pytest.raises(RunStopped):
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert not harness.record.sets


async def test_run_cancelled_while_slow_rows_are_rendered_is_left_within_a_second() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    read: list[float] = []

    def take_half_a_second() -> None:
        harness.clock.seconds += 0.5
        read.append(harness.clock.seconds)
        if len(read) == 10:
            asyncio.run(harness.changing.cancel(run.run_id, OPERATOR))

    harness.rows.on_row = take_half_a_second
    with pytest.raises(RunStopped):
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert 10 <= len(read) <= 14


async def test_more_runs_are_planned_at_a_time_once_more_may_be_running() -> None:
    together = Barrier(8)
    harness = SchedulerHarness(rows=ToyRows(count=1, on_row=lambda: together.wait(5)))
    await harness.runs.limits.change(LimitChanges(max_running_runs=8), by())
    async with asyncio.TaskGroup() as group:
        for run in [(await harness.start(toy_order(tasks=("say",))))[0] for _ in range(8)]:
            group.create_task(harness.tools.planner.plan(harness.fencing_token, run))
    assert not together.broken


async def test_too_many_fewshot_examples_fail_the_run_as_a_bad_parameter() -> None:
    harness = SchedulerHarness(rows=ToyRows(count=3))
    run, _ = await harness.start(toy_order(num_fewshot=3))
    with pytest.raises(PlanningFailed) as failure:
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert failure.value.error.reason == "INVALID_PARAMETER"


async def test_rows_changed_between_two_plannings_of_a_run_are_noticed() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    harness.rows.count = 50
    with pytest.raises(PlanningFailed, match="changed while the run was being planned"):
        await harness.tools.planner.plan(harness.fencing_token, run)


async def test_step_names_the_task_that_is_planned() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    harness.record.sets.clear()
    await harness.runs.set_phase(harness.fencing_token, run, "planning say")
    snapshot = await harness.showing.show(run.run_id)
    assert snapshot.progress.phase == "planning say"
    await harness.advance(driver)
    assert (await harness.runs.get(run.run_id)).state is RunState.RUNNING


async def test_order_overrides_what_the_task_says() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    say = (await harness.runs.planned_tasks(run.run_id))[1]
    merged = params_for(GenerationParams(temperature=0.7, seed=3), say.generation)
    assert (merged.temperature, merged.seed, merged.max_tokens) == (0.7, 3, 8)
    choose = replace(say, generation=None)
    assert params_for(GenerationParams(), choose.generation).max_tokens is None


async def test_results_is_reported_how_was_generated_and_of_choices_nothing() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    say = (await harness.runs.planned_tasks(run.run_id))[1]
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, ())
    run = replace(run, order=toy_order(params=GenerationParams(max_tokens=64)))
    reported = task_to_proto(TaskToOpen(say, scoring), run)
    assert (list(reported.stop), reported.max_tokens, reported.temperature) == (["\n"], 64, 0.0)
    picked = replace(say, generation=None, output_type=OutputType.MULTIPLE_CHOICE)
    choose = task_to_proto(TaskToOpen(picked, scoring), run)
    assert (choose.max_tokens, choose.HasField("temperature")) == (0, False)


async def test_top_p_of_0_is_sent_as_greedy() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    for task in await harness.runs.planned_tasks(run.run_id):
        merged = params_for(GenerationParams(temperature=0.7, top_p=0.0), task.generation)
        assert (merged.temperature, merged.top_p) == (0.0, None)


@pytest.mark.parametrize(
    ("changed", "name", "value"),
    [
        ({"params": GenerationParams(temperature=1.0)}, "temperature", 1.0),
        ({"params": GenerationParams(top_p=0.9)}, "top_p", 0.9),
        ({"params": GenerationParams(top_k=5)}, "top_k", 5),
        ({"params": GenerationParams(max_tokens=9)}, "max_tokens", 9),
        ({"params": GenerationParams(seed=0)}, "seed", 0),
        ({"params": GenerationParams(repetition_penalty=1.1)}, "repetition_penalty", 1.1),
        ({"params": GenerationParams(context_tokens=64)}, "context_tokens", 64),
        ({"params": GenerationParams(provider_params={"min_p": 0.1})}, "provider_params", {"min_p": 0.1}),
        ({"prompt_form": PromptForm.CHAT}, "prompt_form", "chat"),
        ({"agent_kind": AgentKind.ORACLE}, "agent_kind", "oracle"),
    ],
)
async def test_what_requests_have_beside_the_samples_is_told_to_results(
    changed: dict[str, Any], name: str, value: object
) -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    say = (await harness.runs.planned_tasks(run.run_id))[1]
    facts = {"definition": "d", "samples": "s", "agent": "shell"}
    task = TaskToOpen(say, TaskScoring(OutputType.GENERATE_UNTIL, ()), facts)
    usual = task_to_proto(task, run, completes_text=True)
    assert (usual.definition_digest, usual.samples_digest) == ("d", "s")
    requested = json.loads(usual.request_json)
    assert requested == {
        "agent": "shell",
        "max_tokens": 8,
        "prompt_form": "completion",
        "stop": ["\n"],
        "temperature": 0.0,
    }
    other = replace(run, order=replace(run.order, **changed))
    reported = json.loads(task_to_proto(task, other, completes_text=True).request_json)
    assert reported == {**requested, name: value}


async def test_choices_are_continued_where_they_are_scored_by_log_likelihood() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    pick = (await harness.runs.planned_tasks(run.run_id))[0]
    task = TaskToOpen(pick, TaskScoring(OutputType.MULTIPLE_CHOICE, ()))
    found = [
        json.loads(task_to_proto(task, replace(run, scoring_method=method)).request_json)
        for method in (ScoringMethod.LOGLIKELIHOOD, ScoringMethod.GENERATE)
    ]
    assert found[0] == {"prompt_form": "completion"}
    assert (found[1]["prompt_form"], found[1]["choice_instruction"]) == ("chat", INSTRUCTION_VERSION)
    assert (found[1]["temperature"], found[1]["max_tokens"]) == (0.0, 256)
