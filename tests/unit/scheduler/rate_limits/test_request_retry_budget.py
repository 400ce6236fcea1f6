"""The budget of a run for request retries."""

from dataclasses import replace

from services.scheduler.rate_limits.rate_meter import RateReport, RequestRetryBudget
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness


async def a_run(total: int) -> Run:
    return replace(await SchedulerHarness().submit(), total=total)


def spend(
    budget: RequestRetryBudget, run: Run, worker: str, request_retries: int, *, pool: str | None = None
) -> None:
    budget.record(pool or run.pool, RateReport(worker, "p", request_retries={run.run_id: request_retries}))


def is_spent(budget: RequestRetryBudget, run: Run) -> bool:
    return budget.is_spent(run.pool, run.run_id, run.epoch, run.total)


async def test_counts_of_all_workers_are_summed_and_said_again_they_count_once() -> None:
    run, budget = await a_run(1000), RequestRetryBudget(0.2)
    assert not is_spent(budget, run)
    for _ in range(5):
        spend(budget, run, "w1", 120)
        spend(budget, run, "w2", 80)
    assert not is_spent(budget, run)
    spend(budget, run, "w2", 81)
    assert is_spent(budget, run)


async def test_a_small_run_has_a_hundred() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not is_spent(budget, run)
    spend(budget, run, "w1", 100)
    assert not is_spent(budget, run)
    spend(budget, run, "w1", 101)
    assert is_spent(budget, run)


async def test_a_retry_begins_anew() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not is_spent(budget, run)
    spend(budget, run, "w1", 500)
    assert is_spent(budget, run)
    again = replace(run, epoch=run.epoch + 1)
    assert not is_spent(budget, again)
    spend(budget, run, "w1", 601)
    assert is_spent(budget, again)


async def test_reports_of_a_pool_that_the_run_is_not_dispatched_to_do_not_count() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not is_spent(budget, run)
    spend(budget, run, "w1", 90)
    spend(budget, run, "w1", 10**6, pool="another")
    assert not is_spent(budget, run)


async def test_another_pool_cannot_have_the_counts_of_a_run_forgotten() -> None:
    run, budget = await a_run(10), RequestRetryBudget(0.2)
    assert not is_spent(budget, run)
    spend(budget, run, "w1", 101)
    for number in range(2000):
        budget.record("another", RateReport("w2", "p", request_retries={f"invented {number}": 1}))
    assert is_spent(budget, run)
