"""Rollouts of an order at a time: bounded over all of its runs."""

from services.scheduler.dispatch.dispatch_shards import CreditRule
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order


async def test_runs_of_an_order_share_its_bound() -> None:
    harness = SchedulerHarness(rule=CreditRule(min_shards=8, max_shards=8, seconds_ahead=1.0))
    bounded = {"parallel_group": "ann/1", "parallel": 3, "rollouts": 5}
    first, driver = await harness.start(toy_order(**bounded))
    second, other = await harness.start(toy_order(**bounded))
    free, unbounded = await harness.start(toy_order(rollouts=5))
    await harness.advance(driver, 5)
    await harness.advance(other, 5)
    await harness.advance(unbounded, 5)
    assert len(harness.stream.sent[first.run_id]) == 3
    assert not harness.stream.sent.get(second.run_id)
    assert len(harness.stream.sent[free.run_id]) == 8
    # What the first run has done makes room, which either takes.
    await harness.work(first.run_id)
    await harness.advance(driver, 1)
    left = len(harness.stream.sent[first.run_id])
    await harness.advance(other, 2)
    assert left + len(harness.stream.sent.get(second.run_id, [])) == 3
    for run, its_driver in ((first, driver), (second, other)):
        ended = await harness.finish(run.run_id, its_driver)
        assert ended.final_counts is not None
        assert ended.final_counts.recorded == ended.total
