"""Shards of a large task grow in its middle; its first and last ones stay as they are."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proctor.values.comparison import UntilDecided
from proctor.values.run import RunId
from proctor.values.sample import MAX_SHARD_SAMPLES, SHARD_SAMPLES
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.planning.shard import MAX_SHARD_BYTES, ShardCutter, may_grow
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, ready_worker, toy_order
from tests.fakes.suites.toy_suites import ToyRows

LARGE = 4096
FIRST = 1024


def cut(sizes: list[int], *, may_grow: bool = True, first_sample: int = 0, chunk: int = 1000) -> list[range]:
    cutter = ShardCutter(first_sample, may_grow=may_grow)
    for start in range(0, len(sizes), chunk):
        cutter.add(sizes[start : start + chunk])
    return cutter.finish()


@st.composite
def sizes_of_tasks(draw: st.DrawFn) -> list[int]:
    """Stretches of light and of heavy samples: what is heavy is cut by its bytes."""
    sizes: list[int] = []
    for _ in range(draw(st.integers(1, 6))):
        size = draw(
            st.sampled_from([1, 100, MAX_SHARD_BYTES // 100, MAX_SHARD_BYTES // 3, MAX_SHARD_BYTES + 1])
        )
        sizes += [size] * draw(st.integers(0, 3000))
    return sizes


@given(sizes=sizes_of_tasks(), first_sample=st.integers(0, 300), chunk=st.integers(1, 5000))
@example(sizes=[10] * LARGE, first_sample=7, chunk=LARGE)
@example(sizes=[10] * (LARGE - 1), first_sample=7, chunk=1)
def test_whatever_is_cut_every_sample_is_in_one_shard_within_the_limits(
    sizes: list[int], first_sample: int, chunk: int
) -> None:
    ranges = cut(sizes, first_sample=first_sample, chunk=chunk)
    end = first_sample + len(sizes)
    assert [sample for samples in ranges for sample in samples] == list(range(first_sample, end))
    middle = range(first_sample + FIRST, end - len(sizes) // 4)
    for samples in ranges:
        is_in_middle = samples.start >= middle.start and samples.stop <= middle.stop
        assert 0 < len(samples) <= (MAX_SHARD_SAMPLES if is_in_middle else SHARD_SAMPLES)
        weight = sum(sizes[samples.start - first_sample : samples.stop - first_sample])
        assert len(samples) == 1 or weight <= MAX_SHARD_BYTES
    assert ranges == cut(sizes, first_sample=first_sample)
    small = cut(sizes, may_grow=False, first_sample=first_sample)
    # Shards grow by others of the same cut, so none begins where no small one does.
    assert {samples.start for samples in ranges} <= {samples.start for samples in small}
    if len(sizes) < LARGE:
        assert ranges == small


def test_the_first_and_the_last_quarter_stay_small() -> None:
    lengths = [len(samples) for samples in cut([10] * 8192, first_sample=5)]
    assert lengths == [64] * 16 + [128] * 40 + [64] * 32


def test_smallest_large_task_has_a_middle_and_one_less_has_none() -> None:
    assert [len(samples) for samples in cut([10] * LARGE)] == [64] * 16 + [128] * 16 + [64] * 16
    assert cut([10] * (LARGE - 1)) == cut([10] * (LARGE - 1), may_grow=False)


def test_nothing_is_joined_that_is_too_heavy_together() -> None:
    of_a_shard = MAX_SHARD_BYTES // SHARD_SAMPLES
    assert cut([of_a_shard] * 8192) == cut([of_a_shard] * 8192, may_grow=False)
    lengths = [len(samples) for samples in cut([of_a_shard // 2] * 8192)]
    assert lengths.count(128) == 40


async def test_only_runs_without_a_limit_grow_and_only_where_workers_are_fast() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    [task, _] = await harness.runs.planned_tasks(run.run_id)
    order, decided = run.order, UntilDecided("other")
    assert may_grow(task, order, 64)
    assert not may_grow(task, order, 63)
    assert not may_grow(task, replace(order, max_cost=1.0), 64)
    assert not may_grow(task, replace(order, until_decided=decided), 64)
    assert not may_grow(replace(task, is_of_rollouts=True), order, 64)


def test_rollouts_stay_one_by_one_in_a_large_task() -> None:
    cutter = ShardCutter(0, max_samples=1)
    cutter.add([10] * 8192)
    assert cutter.finish() == [range(at, at + 1) for at in range(8192)]


@pytest.mark.parametrize(("concurrency", "largest"), [(64, 128), (4, 64)])
async def test_a_run_is_planned_for_the_workers_of_its_pool(concurrency: int, largest: int) -> None:
    concurrencies = {"other": 64, "remote": concurrency}
    harness = SchedulerHarness(rows=ToyRows(count=LARGE), concurrencies=concurrencies)
    run, driver = await harness.start(toy_order(tasks=("say",)))
    await harness.tools.planner.plan(harness.fencing_token, run)
    shards = await harness.runs.planned(run, -1, 1000)
    assert max(shard.size for shard in shards) == largest
    ended = await harness.finish(run.run_id, driver)
    assert sorted(harness.asked) == list(range(LARGE))
    assert ended.total == LARGE


async def answer_oldest(harness: SchedulerHarness, run_id: RunId, driver: DriveRun, shards: int) -> None:
    sent = harness.stream.take(run_id)
    harness.stream.sent[run_id] = sent[:shards]
    await harness.work(run_id)
    harness.stream.sent[run_id] = sent[shards:]
    # So slow that its speed asks for nothing ahead.
    harness.clock.seconds += 100
    await harness.advance(driver)


@pytest.mark.parametrize(("concurrency", "workers", "before", "grown"), [(256, 2, 16, 8), (64, 4, 8, 8)])
async def test_workers_have_twice_what_they_take_at_a_time_on_the_way(
    concurrency: int, workers: int, before: int, grown: int
) -> None:
    harness = SchedulerHarness(rows=ToyRows(count=16_384))
    harness.registry.live = [ready_worker(concurrency=concurrency, worker_id=f"w{n}") for n in range(workers)]
    run, driver = await harness.start(toy_order(tasks=("say",)))
    await harness.advance(driver, 2)

    def sizes() -> list[int]:
        return [shard.size for _, shard in harness.stream.sent[run.run_id]]

    assert sizes() == [SHARD_SAMPLES] * before
    while min(sizes()) < MAX_SHARD_SAMPLES:
        await answer_oldest(harness, run.run_id, driver, 2)
    for _ in range(8):
        await answer_oldest(harness, run.run_id, driver, 2)
    assert sizes() == [MAX_SHARD_SAMPLES] * grown
