"""Two runs until decided, as the leader drives them: in step, and stopped by one decision."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from proctor.values.comparison import Decision, DecisionVerdict, UntilDecided
from proctor.values.run import RunId, RunState
from services.scheduler.dispatch.decide_run import LEAD_OUTCOMES, PATIENCE_SECONDS
from services.scheduler.dispatch.drive_run import DriveRun
from services.scheduler.progress.progress_tracker import ProgressReport
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, toy_order
from tests.fakes.scheduler_rules import credit_rule

OTHER = "openai/other"
DECISION = Decision(DecisionVerdict.BETTER, 0.1, 0.02, 0.2, pairs=64, failed=0, alpha=0.05)


async def start(harness: SchedulerHarness, **changes: object) -> Sequence[tuple[Run, DriveRun]]:
    """The run and its base, admitted, each with its driver."""
    order = toy_order(until_decided=UntilDecided(OTHER), **changes)
    first = await harness.submit(order)
    assert first.order.until_decided is not None
    base_id = RunId(first.order.until_decided.against_run_id)
    await harness.admit()
    return [(await harness.runs.get(run_id), harness.driver(run_id)) for run_id in (first.run_id, base_id)]


@pytest.fixture
def harness() -> SchedulerHarness:
    return SchedulerHarness(rule=credit_rule(min_shards=1, max_shards=1))


async def test_one_order_makes_two_runs_with_one_order_of_samples(harness: SchedulerHarness) -> None:
    (first, driver), (base, other_driver) = await start(harness)
    assert base.order.until_decided is not None
    assert first.order.until_decided is not None
    assert (base.order.model, base.order.until_decided.against_model) == (OTHER, first.order.model)
    assert (base.order.until_decided.against_run_id, base.order.until_decided.is_base) == (first.run_id, True)
    assert base.order.until_decided.seed == first.order.until_decided.seed
    await harness.advance(driver, 3)
    await harness.advance(other_driver, 3)
    sent = [[shard.samples for _, shard in harness.stream.take(run.run_id)] for run in (first, base)]
    assert sent[0] == sent[1]
    assert sorted(sent[0][0]) != list(range(64))


async def test_a_repeated_call_tells_workers_nothing_older_of_the_base(harness: SchedulerHarness) -> None:
    """Workers drop shards of a run that they take for pending."""
    submission = Submission(
        RunId(str(uuid4())), toy_order(until_decided=UntilDecided(OTHER)), "local", request_id=str(uuid4())
    )
    first = await harness.submitting.submit(submission)
    assert first.order.until_decided is not None
    base_id = RunId(first.order.until_decided.against_run_id)
    await harness.admit()
    await harness.advance(harness.driver(base_id), 3)
    assert harness.controls.words[base_id] == (RunState.RUNNING, 1)
    again = await harness.submitting.submit(replace(submission, run_id=RunId(str(uuid4()))))
    assert again.run_id == first.run_id
    assert harness.controls.words[base_id] == (RunState.RUNNING, 1)


async def test_both_stop_with_what_they_have_and_hold_no_slot(harness: SchedulerHarness) -> None:
    both = await start(harness)
    for run, driver in both:
        await harness.advance(driver, 3)
        assert 0 < await harness.work(run.run_id) <= 64
        await harness.advance(driver)
    harness.record.decisions = {run.run_id: DECISION for run, _ in both}
    for run, driver in both:
        await harness.advance(driver)
        stopped = await harness.runs.get(run.run_id)
        assert (stopped.is_closing, stopped.decision) == (True, DECISION)
        ended = await harness.finish(run.run_id, driver)
        assert (ended.state, ended.is_closed, ended.decision) == (RunState.COMPLETED, True, DECISION)
        assert ended.final_counts is not None
        assert 0 < ended.final_counts.recorded < ended.total
        assert harness.stream.sent.get(run.run_id, []) == []
    assert harness.record.closings == [(run.run_id, 1, True) for run, _ in both]


async def test_a_leader_that_ends_between_decision_and_stop_loses_nothing(harness: SchedulerHarness) -> None:
    (first, driver), _ = await start(harness)
    await harness.advance(driver, 3)
    await harness.work(first.run_id)
    harness.record.decisions[first.run_id] = DECISION
    harness.fencing_token = harness.runs.begin_term()
    ended = await harness.finish(first.run_id, harness.driver(first.run_id))
    assert (ended.state, ended.decision) == (RunState.COMPLETED, DECISION)


async def test_a_leader_that_ends_after_the_stop_is_followed_by_one_that_closes(
    harness: SchedulerHarness,
) -> None:
    (first, driver), _ = await start(harness)
    await harness.advance(driver, 3)
    harness.record.decisions[first.run_id] = DECISION
    await harness.work(first.run_id)
    await harness.advance(driver)
    assert (await harness.runs.get(first.run_id)).is_closing
    harness.fencing_token = harness.runs.begin_term()
    ended = await harness.finish(first.run_id, harness.driver(first.run_id))
    assert (ended.state, ended.is_closed) == (RunState.COMPLETED, True)
    assert harness.record.closings == [(first.run_id, 1, True)]


async def test_a_run_that_is_ahead_waits_for_the_other_but_not_for_ever(harness: SchedulerHarness) -> None:
    (first, driver), (_, other_driver) = await start(harness, rollouts=20)
    await harness.advance(other_driver, 3)
    asked = 0
    for _ in range(10):
        await harness.advance(driver)
        asked += await harness.work(first.run_id) if first.run_id in harness.record.records else 0
    assert LEAD_OUTCOMES <= asked <= LEAD_OUTCOMES + 64
    harness.clock.seconds += PATIENCE_SECONDS
    await harness.advance(driver, 2)
    assert await harness.work(first.run_id) > 0


async def test_answers_that_were_reused_keep_no_run_ahead(harness: SchedulerHarness) -> None:
    """Else the other one would ask alone until it has as many, in an order that the first one has gaps in."""
    (first, driver), (_, other_driver) = await start(harness, rollouts=20, reuse_answers=True)
    await harness.advance(other_driver, 3)
    await harness.advance(driver, 3)
    await harness.work(first.run_id)
    reused = 2 * LEAD_OUTCOMES
    harness.runs.runs[first.run_id] = replace(await harness.runs.get(first.run_id), reused_answers=reused)
    counts = (await harness.record.counts(first.run_id)).counts
    task = replace(counts.tasks[0], recorded=counts.recorded + reused)
    harness.tracker.record(ProgressReport(first.run_id, replace(counts, tasks=(task,))), 0)
    await harness.advance(driver)
    assert await harness.work(first.run_id) > 0


@pytest.mark.parametrize("how", ["cancelled", "without a slot"])
async def test_a_run_does_not_wait_for_one_that_asks_nothing(harness: SchedulerHarness, how: str) -> None:
    (first, driver), (base, _) = await start(harness)
    if how == "cancelled":
        await harness.changing.cancel(base.run_id, OPERATOR)
    else:
        await harness.changing.pause(base.run_id, OPERATOR)
    ended = await harness.finish(first.run_id, driver)
    assert (ended.state, ended.decision) == (RunState.COMPLETED, None)
    assert ended.final_counts is not None
    assert ended.final_counts.recorded == ended.total


async def test_a_run_that_stopped_early_is_cancelled_as_long_as_its_figures_are_computed(
    harness: SchedulerHarness,
) -> None:
    (first, driver), _ = await start(harness)
    await harness.advance(driver, 3)
    harness.record.decisions[first.run_id] = DECISION
    await harness.work(first.run_id)
    await harness.advance(driver)
    await harness.changing.cancel(first.run_id, OPERATOR)
    assert (await harness.finish(first.run_id, driver)).state is RunState.CANCELLED


async def test_too_many_failures_of_what_was_asked_fail_a_stopped_run(harness: SchedulerHarness) -> None:
    (first, driver), _ = await start(harness)
    await harness.advance(driver, 3)
    harness.record.decisions[first.run_id] = replace(DECISION, failed=60)
    # Half of them: which samples come first is drawn, so a tenth of all may be none of a shard.
    await harness.work(first.run_id, lambda sample: "engine" if sample % 2 == 0 else "")
    ended = await harness.finish(first.run_id, driver)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.reason == "TOO_MANY_FAILURES"
