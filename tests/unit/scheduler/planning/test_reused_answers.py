"""A run that asks for it reuses stored answers of earlier runs, and only the rest goes to the workers."""

from dataclasses import replace
from typing import Any

import pytest

from proctor.values.generation import GenerationParams
from proctor.values.run import RunState
from proctor.values.scoring import ScoringMethod
from services.scheduler.planning.grpc_results import request_digest
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.orders.run_order import RunOrder
from services.scheduler.workers.worker import Worker, engine_facts
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, ready_worker, toy_order
from tests.fakes.scheduler.surroundings import ListedWorkers

FACTS = {"engine": "openai", "engine_version": "1"}


def stand_with_worker() -> SchedulerHarness:
    return SchedulerHarness(registry=ListedWorkers([ready_worker(environment=FACTS)]))


async def run_to_end(harness: SchedulerHarness, order: RunOrder) -> Run:
    run, driver = await harness.start(order)
    return await harness.finish(run.run_id, driver)


async def test_what_an_earlier_run_answered_is_not_asked_again() -> None:
    harness = stand_with_worker()
    first = await run_to_end(harness, toy_order())
    asked = len(harness.asked)
    again = await run_to_end(harness, toy_order(reuse_answers=True))
    assert (again.state, again.reused_answers) == (RunState.COMPLETED, first.total)
    assert len(harness.asked) == asked


async def test_what_the_machinery_failed_is_asked() -> None:
    harness = stand_with_worker()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver, lambda sample: "timeout" if sample == 1 else "")
    asked = len(harness.asked)
    again = await run_to_end(harness, toy_order(reuse_answers=True))
    assert again.reused_answers == again.total - 1
    assert harness.asked[asked:] == [1]


async def test_without_the_order_to_nothing_is_taken() -> None:
    harness = stand_with_worker()
    first = await run_to_end(harness, toy_order())
    again = await run_to_end(harness, toy_order())
    assert again.reused_answers == 0
    assert len(harness.asked) == 2 * first.total


async def test_answers_of_an_unknown_engine_are_not_reused() -> None:
    harness = SchedulerHarness()
    await run_to_end(harness, toy_order())
    again = await run_to_end(harness, toy_order(reuse_answers=True))
    assert (again.state, again.reused_answers) == (RunState.COMPLETED, 0)


def test_facts_of_an_engine_are_those_on_which_all_its_workers_agree() -> None:
    one = Worker("a", "p", "vllm", loaded_model="vllm/m", environment={**FACTS, "hardware": "x"})
    other = replace(one, worker_id="b", environment={**FACTS, "hardware": "y"})
    newer = replace(one, worker_id="c", environment={**FACTS, "engine_version": "2"})
    elsewhere = replace(newer, loaded_model="vllm/other")
    assert engine_facts("vllm/m", "", "p", [one, other, elsewhere]) == FACTS
    assert engine_facts("vllm/m", "", "p", [one, newer]) == {}
    assert engine_facts("vllm/m", "", "other pool", [one]) == {}


def test_an_adapter_beside_the_loaded_model_is_at_hand() -> None:
    one = Worker("a", "p", "vllm", loaded_model="vllm/base", ready_models=("vllm/m",), environment=FACTS)
    assert engine_facts("vllm/m", "", "p", [one]) == FACTS
    assert engine_facts("vllm/n", "", "p", [one]) == {}


def test_the_server_that_an_order_names_is_the_one_that_answers() -> None:
    one = Worker("a", "p", "openai", environment={**FACTS, "base_url": "http://own"})
    named = ("openai/m", "http://named/v1")
    assert engine_facts(*named, "p", [one])["base_url"] == "http://named/v1"
    assert engine_facts(*named, "p", []) == {}


@pytest.mark.parametrize(
    "changed",
    [
        {"params": GenerationParams(temperature=0.5)},
        {"params": GenerationParams(seed=1)},
        {"model": "openai/other"},
        {"base_url": "http://other"},
    ],
)
async def test_another_request_has_another_digest(changed: dict[str, Any]) -> None:
    harness = stand_with_worker()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    [*_, task] = await harness.runs.planned_tasks(run.run_id)
    run = replace(run, scoring_method=ScoringMethod.GENERATE)
    other = replace(run, order=replace(run.order, **changed))
    assert request_digest(run, task) == request_digest(replace(run, pool="another"), task)
    assert request_digest(run, task) != request_digest(other, task)
