"""Samples that were just rendered are given once, and kept within a bound."""

from dataclasses import replace

import pytest

from proctor.values.sample import Prompt
from services.scheduler.planning.rendered_samples import RenderedSamples
from services.scheduler.suites.rendering.sample import RenderedSample
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order

SAMPLE = RenderedSample(0, 0, b"d" * 32, Prompt("rendered"), size_bytes=400)


def samples(*positions: int) -> list[RenderedSample]:
    return [replace(SAMPLE, position=position) for position in positions]


def test_each_is_given_once() -> None:
    rendered = RenderedSamples()
    rendered.add("staged", samples(0, 1, 2))
    rendered.rename("staged", "kept")
    assert not rendered.take("staged", [0])
    assert [*rendered.take("kept", [2, 7, 0])] == [2, 0]
    assert [*rendered.take("kept", [0, 1, 2])] == [1]
    assert rendered.size_bytes == 0


def test_first_samples_of_a_set_that_is_too_large_are_kept() -> None:
    rendered = RenderedSamples(max_bytes=2000)
    rendered.add("set", samples(0, 1))
    rendered.add("set", samples(2, 3))
    assert [*rendered.take("set", range(4))] == [0, 1]


def test_oldest_sets_give_way_to_a_new_one() -> None:
    rendered = RenderedSamples(max_bytes=2000)
    for set_id in ("old", "newer", "newest"):
        rendered.add(set_id, samples(0))
    assert rendered.size_bytes <= 2000
    assert [len(rendered.take(set_id, [0])) for set_id in ("old", "newer", "newest")] == [0, 1, 1]


def test_same_set_rendered_twice_is_counted_once() -> None:
    rendered = RenderedSamples()
    for staged in ("one", "two"):
        rendered.add(staged, samples(0, 1))
        rendered.rename(staged, "kept")
    assert [*rendered.take("kept", [0, 1])] == [0, 1]
    assert rendered.size_bytes == 0


async def test_planning_that_fails_leaves_nothing_behind() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start(toy_order(tasks=("say",)))
    rendered = harness.tools.planner.rendered
    harness.record.refusal = RuntimeError("results is broken")
    with pytest.raises(RuntimeError):
        await harness.tools.planner.plan(harness.fencing_token, run)
    assert rendered.size_bytes == 0
    harness.record.refusal = None
    await harness.tools.planner.plan(harness.fencing_token, run)
    assert rendered.size_bytes > 0
