"""The budget of a run for request retries."""

from dataclasses import replace

from services.scheduler.rate_limits.rate_meter import RateReport, RequestRetryBudget
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness


async def a_run(total: int) -> Run:
    return replace(await SchedulerHarness().submit(), total=total)


def spend(budget: RequestRetryBudget, run: Run, worker: str, request_retries: int) -> None:
    budget.record(RateReport(worker, "p", request_retries={run.run_id: request_retries}))


async def test_counts_of_all_workers_are_summed_and_said_again_they_count_once() -> None:
    run, budget = await a_run(1000), RequestRetryBudget(0.2)
    assert not budget.is_spent(run.run_id, run.epoch, run.total)
    for _ in range(5):
        spend(budget, run, "w1", 120)
        spend(budget, run, "w2", 80)
    assert not budget.is_spent(run.run_id, run.epoch, run.total)
    spend(budget, run, "w2", 81)
    assert budget.is_spent(run.run_id, run.epoch, run.total)


async def test_a_small_run_has_a_hundred() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not budget.is_spent(run.run_id, run.epoch, run.total)
    spend(budget, run, "w1", 100)
    assert not budget.is_spent(run.run_id, run.epoch, run.total)
    spend(budget, run, "w1", 101)
    assert budget.is_spent(run.run_id, run.epoch, run.total)


async def test_a_retry_begins_anew() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not budget.is_spent(run.run_id, run.epoch, run.total)
    spend(budget, run, "w1", 500)
    assert budget.is_spent(run.run_id, run.epoch, run.total)
    again = replace(run, epoch=run.epoch + 1)
    assert not budget.is_spent(again.run_id, again.epoch, again.total)
    spend(budget, run, "w1", 601)
    assert budget.is_spent(again.run_id, again.epoch, again.total)
