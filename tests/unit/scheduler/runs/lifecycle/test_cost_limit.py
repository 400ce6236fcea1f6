"""A run stops at its cost limit: cleanly, with what it has, and with little on the way when it does."""

from dataclasses import replace

import pytest

from proctor.values.run import RunCounts, RunState, TaskCounts
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.errors import InvalidParameter
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.pricing.price_list import PriceList
from services.scheduler.pricing.resolve_price import NoPrice, NoPriceElsewhere
from services.scheduler.runs.lifecycle.cost_limit import affordable_samples
from services.scheduler.runs.lifecycle.errors import CostLimitStays
from services.scheduler.runs.lifecycle.run import Run
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.suites.toy_suites import MODEL

# A sample costs 1 by it.
PRICE = ModelPrice(10_000, 0)
TOKENS = TokenUsage(100, 5)


def priced_stand() -> SchedulerHarness:
    harness = SchedulerHarness(prices=PriceList({MODEL: PRICE}))
    harness.record.tokens_of_sample = TOKENS
    harness.fencing_token = harness.runs.begin_term()
    return harness


async def drive_to_end(harness: SchedulerHarness, max_cost: float) -> Run:
    run, driver = await harness.start(toy_order(max_cost=max_cost))
    for _ in range(100):
        if await harness.advance(driver):
            break
        if not (await harness.runs.get(run.run_id)).state.is_final:
            await harness.work(run.run_id)
    return await harness.runs.get(run.run_id)


async def test_a_run_at_its_limit_fails_and_keeps_what_it_has() -> None:
    harness = priced_stand()
    run = await drive_to_end(harness, max_cost=70)
    assert run.state is RunState.FAILED
    assert run.error is not None
    assert run.error.reason == "COST_LIMIT_REACHED"
    assert "70 USD" in run.error.message
    assert run.is_closed
    counts = run.final_counts
    assert counts is not None
    assert counts.usage == TokenUsage(100 * counts.recorded, 5 * counts.recorded)
    assert 70 <= counts.recorded < run.total
    snapshot = await harness.showing.show(run.run_id)
    assert snapshot.progress.cost == pytest.approx(counts.recorded)


async def test_a_large_run_ends_as_close_to_its_limit_as_a_small_one() -> None:
    harness = priced_stand()
    harness.rows.count = 8192
    run = await drive_to_end(harness, max_cost=5000)
    assert run.state is RunState.FAILED
    assert run.final_counts is not None
    assert 5000 <= run.final_counts.recorded < 5000 + 64


async def test_no_more_than_a_shard_is_on_the_way_near_the_limit() -> None:
    harness = priced_stand()
    run = await drive_to_end(harness, max_cost=70)
    assert run.final_counts is not None
    assert run.final_counts.recorded <= 70 + 64


async def test_a_run_that_the_money_just_pays_for_is_completed() -> None:
    harness = priced_stand()
    free = await drive_to_end(harness, max_cost=1e9)
    assert free.state is RunState.COMPLETED
    exact = await drive_to_end(priced_stand(), max_cost=free.total)
    assert exact.state is RunState.COMPLETED


async def test_a_stopped_run_is_not_retried_at_its_limit() -> None:
    harness = priced_stand()
    run = await drive_to_end(harness, max_cost=70)
    with pytest.raises(CostLimitStays, match="Order it again with a higher max_cost"):
        await harness.changing.retry(run.run_id, OPERATOR)
    assert (await harness.runs.get(run.run_id)).state is RunState.FAILED


async def test_a_limit_that_no_token_counts_can_keep_stops_the_run() -> None:
    harness = priced_stand()
    harness.record.tokens_of_sample = TokenUsage()
    run = await drive_to_end(harness, max_cost=70)
    assert run.error is not None
    assert run.error.reason == "UNSUPPORTED"
    assert MODEL in run.error.message


async def begun_rollouts(harness: SchedulerHarness, **order: object) -> tuple[Run, DriveRun]:
    """A run whose shards are sent, and whose tasks are those of agents."""
    run, driver = await harness.start(toy_order(**order))
    await harness.advance(driver, 2)
    harness.runs.tasks[run.run_id] = tuple(
        replace(task, is_of_rollouts=True) for task in harness.runs.tasks[run.run_id]
    )
    driver.reset()
    return run, driver


async def test_rollouts_in_flight_count_against_the_limit() -> None:
    """One may cost more than the whole run may, before any has an outcome."""
    harness = priced_stand()
    run, driver = await begun_rollouts(harness, max_cost=70)
    harness.rollout_use.tokens = TokenUsage(6999, 0)
    await harness.advance(driver, 2)
    assert (await harness.runs.get(run.run_id)).state is RunState.RUNNING
    harness.rollout_use.tokens = TokenUsage(7000, 0)
    await harness.advance(driver, 1)
    failed = await harness.runs.get(run.run_id)
    assert failed.error is not None
    assert failed.error.reason == "COST_LIMIT_REACHED"


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_tokens_of_rollouts_that_were_broken_off_are_those_of_the_run(*, is_cancelled: bool) -> None:
    harness = priced_stand()
    harness.rollout_use.questions_to_leave = 2
    run, driver = await begun_rollouts(harness, max_cost=70)
    harness.rollout_use.tokens = TokenUsage(7100, 20)
    if is_cancelled:
        await harness.changing.cancel(run.run_id, OPERATOR)
    # Workers leave their rollouts some steps after they learn of the end of the run.
    assert not await harness.advance(driver, 2)
    assert await harness.advance(driver, 5)
    ended = await harness.runs.get(run.run_id)
    assert ended.state is (RunState.CANCELLED if is_cancelled else RunState.FAILED)
    assert len(harness.rollout_use.missing) == ended.total
    assert ended.final_counts is not None
    assert ended.final_counts.usage == TokenUsage(7100, 20)
    with pytest.raises(CostLimitStays):
        await harness.changing.retry(run.run_id, OPERATOR)


async def test_a_limit_needs_a_price() -> None:
    harness = SchedulerHarness()
    with pytest.raises(NoPrice, match=f"No price is known of {MODEL}"):
        await harness.submit(toy_order(max_cost=1.0))
    assert (await harness.submit(toy_order())).price is None


async def test_the_price_of_a_model_is_not_that_of_another_server() -> None:
    with pytest.raises(NoPriceElsewhere, match="No price is known of the server http://own/v1"):
        priced_stand().submitting.pricing.price_of(MODEL, "http://own/v1", 1.0)


@pytest.mark.parametrize("max_cost", [0.0, -1.0, float("nan"), float("inf")])
async def test_a_limit_is_above_zero_and_finite(max_cost: float) -> None:
    with pytest.raises(InvalidParameter, match="max_cost is"):
        await priced_stand().submit(toy_order(max_cost=max_cost))


async def test_the_run_keeps_the_price_of_its_submission() -> None:
    harness = priced_stand()
    assert (await harness.submit()).price == PRICE


async def test_the_rest_of_the_money_pays_for_samples_at_their_mean_cost() -> None:
    harness = priced_stand()
    run = await harness.submit(toy_order(max_cost=10))
    counts = RunCounts(1, (TaskCounts("t", recorded=8, failed=4),), usage=TokenUsage(400))
    # Failures cost nothing, and tell nothing of what answers will.
    assert affordable_samples(run, counts) == pytest.approx(6 / 1)
    # Nor do answers of earlier runs.
    reused = replace(run, reused_answers=2)
    assert affordable_samples(reused, counts) == pytest.approx(6 / 2)
    unlimited = await harness.submit()
    assert affordable_samples(unlimited, counts) == float("inf")


async def test_while_nothing_was_paid_one_shard_goes_at_a_time() -> None:
    run = await priced_stand().submit(toy_order(max_cost=10))
    all_failed = RunCounts(1, (TaskCounts("t", recorded=64, failed=64),))
    all_reused = RunCounts(1, (TaskCounts("t", recorded=64),))
    assert affordable_samples(run, None) == 0
    assert affordable_samples(run, all_failed) == 0
    assert affordable_samples(replace(run, reused_answers=64), all_reused) == 0
    free = replace(run, price=ModelPrice(0, 0))
    assert affordable_samples(free, all_failed) == float("inf")


async def test_a_first_shard_that_fails_lets_no_more_go_out_than_one_shard() -> None:
    harness = priced_stand()
    run, driver = await harness.start(toy_order(max_cost=10, rollouts=5))
    first_ended = False
    for _ in range(100):
        if await harness.advance(driver):
            break
        if not (await harness.runs.get(run.run_id)).state.is_final:
            taken = await harness.work(run.run_id, (lambda _: "") if first_ended else (lambda _: "refused"))
            first_ended |= taken > 0
    ended = await harness.runs.get(run.run_id)
    assert ended.final_counts is not None
    answered = ended.final_counts.recorded - ended.final_counts.failed
    assert 10 <= answered <= 64


async def test_an_order_is_reported_what_it_will_cost_once_runs_like_it_have_ended() -> None:
    harness = priced_stand()
    ended = await drive_to_end(harness, max_cost=1e9)
    submission = await harness.submit()
    assert (await harness.estimate(submission)).cost == pytest.approx(ended.total)
