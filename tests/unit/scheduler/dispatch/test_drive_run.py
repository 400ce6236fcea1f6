"""A run from admission to its end, on in-memory ports."""

from dataclasses import replace

import pytest

from proctor.values.run import RunState
from services.common.errors import ErrorKind, MessageTooLarge, RemoteError
from services.scheduler.leadership.leader_election import LeadershipLost
from services.scheduler.runs.lifecycle.errors import RunNotRetryable
from services.scheduler.runs.lifecycle.run import RunError
from services.scheduler.workers.worker import RefusedRun
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.scheduler_harness import SchedulerHarness, ready_worker, toy_order
from tests.fakes.scheduler_rules import credit_rule


async def test_run_is_planned_dispatched_recorded_and_closed() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(rollouts=2))
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    assert ended.is_closed
    assert ended.total == 400
    assert ended.final_counts is not None
    assert ended.final_counts.recorded == 400
    assert harness.record.closings == [(run.run_id, 1, False)]
    assert harness.controls.words[run.run_id] == (RunState.COMPLETED, 1)


async def test_environment_says_what_is_needed_to_repeat_the_run() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    ended = await harness.finish(run.run_id, driver)
    assert ended.environment["proctor"] == "0.1.0"
    assert ended.environment["task.choose.row_source_revision"] == "revision 1"
    assert "task.choose.fewshot_seed" not in ended.environment
    assert ended.environment["engine"] == "fake 1"


async def test_environment_says_by_which_seed_examples_were_drawn() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start(toy_order(num_fewshot=2))
    ended = await harness.finish(run.run_id, driver)
    assert ended.environment["task.choose.fewshot_seed"] == "1234"


async def test_no_more_goes_out_than_the_credit_allows() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    run, driver = await harness.start()
    await harness.advance(driver, 5)
    assert len(harness.stream.sent[run.run_id]) == 2
    await harness.work(run.run_id)
    await harness.advance(driver)
    assert len(harness.stream.sent[run.run_id]) == 2


async def test_what_frees_little_of_the_credit_sends_nothing_yet() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=8, max_shards=8))
    run, driver = await harness.start(toy_order(rollouts=20))
    await harness.advance(driver, 3)
    sent = harness.stream.take(run.run_id)
    left = []
    for done in sent[:2]:
        harness.stream.sent[run.run_id] = [done]
        await harness.work(run.run_id)
        await harness.advance(driver)
        left.append(len(harness.stream.take(run.run_id)))
    assert (len(sent), left) == (8, [0, 2])


async def test_rows_that_are_nowhere_fail_the_run_with_the_reasons() -> None:
    harness = SchedulerHarness()
    harness.rows.count = None
    run, driver = await harness.start()
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.FAILED
    assert ended.is_closed
    assert ended.error is not None
    assert ended.error.reason == "ROWS_UNAVAILABLE"
    assert ended.error.message.startswith("Failed to load TOY dataset: ")
    assert "the hub is away" in ended.error.message


@pytest.mark.parametrize("kind", [ErrorKind.INVALID, ErrorKind.CONFLICT, ErrorKind.NOT_FOUND])
async def test_plan_that_results_refuses_fails_the_run_at_once(kind: ErrorKind) -> None:
    harness = SchedulerHarness()
    harness.record.refusal = RemoteError(kind, "UNSTORABLE_TEXT", "Rows cannot be stored.", {})
    run, driver = await harness.start()
    ended = await harness.finish(run.run_id, driver)
    assert ended.error == RunError("UNSTORABLE_TEXT", "The run cannot be planned: Rows cannot be stored.")


async def test_shard_that_is_too_large_to_be_sent_fails_the_run_at_once() -> None:
    harness = SchedulerHarness()
    harness.stream.refusal = MessageTooLarge("A message of 9000000 bytes is too large to be sent.")
    run, driver = await harness.start()
    assert await harness.advance(driver, steps=4)
    ended = await harness.runs.get(run.run_id)
    assert ended.error is not None
    assert (ended.is_closed, ended.error.reason) == (True, "SAMPLE_TOO_LARGE")
    assert "9000000 bytes" in ended.error.message


async def test_results_that_is_away_while_a_run_is_planned_fails_no_run() -> None:
    harness = SchedulerHarness()
    harness.record.refusal = RemoteError(ErrorKind.UNAVAILABLE, "DEPENDENCY_UNAVAILABLE", "away", {})
    run, driver = await harness.start()
    for _ in range(30):
        with pytest.raises(RemoteError):
            await harness.advance(driver)
    harness.record.refusal = None
    assert (await harness.finish(run.run_id, driver)).state is RunState.COMPLETED


@pytest.mark.parametrize("stage", ["rows", "record"])
async def test_planning_that_breaks_again_and_again_fails_the_run_with_an_incident(stage: str) -> None:
    harness = SchedulerHarness()
    broken = ValueError("nobody foresaw this")
    if stage == "rows":
        harness.rows.broken = broken
    else:
        harness.record.refusal = broken
    run, driver = await harness.start()
    for _ in range(harness.tools.timings.unexpected_failures - 1):
        with pytest.raises(ValueError, match="nobody foresaw"):
            await harness.advance(driver)
    ended = await harness.finish(run.run_id, driver)
    assert ended.error is not None
    assert ended.error.reason == "INTERNAL"
    assert "incident" in ended.error.message


async def test_planning_ends_where_the_time_of_the_run_ends() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    read: list[float] = []

    def take_an_hour() -> None:
        harness.clock.seconds += 3600
        read.append(harness.clock.seconds)

    harness.rows.on_row = take_an_hour
    ended = await harness.finish(run.run_id, driver)
    assert ended.error is not None
    assert ended.error.reason == "DEADLINE_REACHED"
    assert len(read) < 10


async def test_too_many_machinery_failures_fail_the_run_and_say_which() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    ended = await harness.finish(run.run_id, driver, lambda sample: "timeout" if sample < 11 else "")
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.reason == "TOO_MANY_FAILURES"
    assert all(fact in ended.error.message for fact in ("11 of 200", "5%", "timeout"))


async def test_a_failed_run_shows_a_failure_of_the_class_that_it_names() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    failures = {0: "refused", 1: "refused", **dict.fromkeys(range(2, 14), "timeout")}
    ended = await harness.finish(run.run_id, driver, lambda sample: failures.get(sample, ""))
    assert ended.error is not None
    assert ended.error.message.endswith("most often by timeout: the timeout of a sample")


async def test_few_machinery_failures_leave_the_run_completed() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    ended = await harness.finish(run.run_id, driver, lambda sample: "timeout" if sample < 10 else "")
    assert ended.state is RunState.COMPLETED
    assert ended.final_counts is not None
    assert ended.final_counts.failed == 10


async def test_deadline_fails_the_run_and_keeps_what_it_has() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.work(run.run_id)
    harness.clock.seconds += 3 * 3600
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.reason == "DEADLINE_REACHED"
    assert ended.error.message.count("Resource limits exceeded (time)") == 1
    assert harness.record.closings == [(run.run_id, 1, True)]
    assert not harness.stream.sent


async def test_model_that_no_worker_can_load_fails_the_run_with_the_engines_reason() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    harness.registry.live = [ready_worker(cannot_load={"openai/fake": "no config.json"})]
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.error is not None
    assert ended.error.reason == "MODEL_CANNOT_LOAD"
    assert "no config.json" in ended.error.message


async def test_run_that_the_provider_refuses_fails_by_the_word_of_one_worker() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    reason = "API key not configured for Gemini: set GOOGLE_API_KEY where the worker runs."
    met_it = ready_worker(worker_id="w2", refusals=(RefusedRun(run.run_id, 1, reason),))
    harness.registry.live = [ready_worker(refusals=(RefusedRun("another", 1, "no"),)), met_it]
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.error == RunError("PROVIDER_REFUSED", f"AI provider error: {reason}")


async def test_refusal_of_an_earlier_epoch_does_not_fail_a_retry() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    harness.registry.live = [ready_worker(refusals=(RefusedRun(run.run_id, 0, "wrong key"),))]
    assert (await harness.finish(run.run_id, driver)).state is RunState.COMPLETED


async def test_run_goes_on_while_one_worker_can_load_the_model() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    broken = ready_worker(worker_id="w2", cannot_load={"openai/fake": "no config.json"})
    harness.registry.live = [ready_worker(), broken]
    assert (await harness.finish(run.run_id, driver)).state is RunState.COMPLETED


async def test_cancelled_run_is_purged_and_closed_as_partial() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert harness.controls.words[run.run_id] == (RunState.CANCELLED, 1)
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.state is RunState.CANCELLED
    assert ended.is_closed
    assert not harness.stream.sent
    assert harness.record.closings == [(run.run_id, 1, True)]


async def test_closing_waits_for_outcomes_that_are_stored_but_only_so_long() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.changing.cancel(run.run_id, OPERATOR)
    harness.stream.pending_in_outcomes = 1
    assert not await harness.advance(driver, 4)
    assert await harness.advance(driver, 4)


async def test_run_cancelled_before_it_was_planned_is_closed_without_a_summary() -> None:
    harness = SchedulerHarness()
    run = await harness.submit()
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(harness.driver(run.run_id), 3)
    ended = await harness.runs.get(run.run_id)
    assert ended.is_closed
    assert ended.final_counts is None


async def test_retry_asks_only_for_what_is_missing_or_failed() -> None:
    harness = SchedulerHarness(rule=credit_rule(min_shards=2, max_shards=2))
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    answered = await harness.work(run.run_id, lambda sample: "timeout" if sample == 5 else "")
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(driver, 3)
    again = await harness.changing.retry(run.run_id, OPERATOR)
    assert (again.state, again.epoch, again.deadline) == (RunState.PENDING, 2, None)
    await harness.admit()
    second = harness.driver(run.run_id)
    harness.asked.clear()
    ended = await harness.finish(run.run_id, second)
    assert ended.state is RunState.COMPLETED
    assert len(harness.asked) == 200 - answered + 1
    assert 5 in harness.asked
    assert len(set(harness.asked)) == len(harness.asked)


async def test_run_cancelled_again_before_its_retry_began_is_closed() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    await harness.changing.cancel(run.run_id, OPERATOR)
    await harness.advance(driver, 3)
    await harness.changing.retry(run.run_id, OPERATOR)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(harness.driver(run.run_id), 3)
    assert (await harness.runs.get(run.run_id)).is_closed


async def test_run_stopped_between_its_record_and_its_shards_is_closed_in_its_retry() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    await harness.tools.planner.plan(harness.fencing_token, run)
    # The process dies before the run is marked as planned.
    harness.runs.runs[run.run_id] = replace(await harness.runs.get(run.run_id), planned_epoch=0)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(harness.driver(run.run_id), 3)
    await harness.changing.retry(run.run_id, OPERATOR)
    await harness.changing.cancel(run.run_id, OPERATOR)
    assert await harness.advance(harness.driver(run.run_id), 3)
    assert (await harness.runs.get(run.run_id)).is_closed
    assert harness.record.closings == [(run.run_id, 1, True), (run.run_id, 2, True)]


async def test_completed_run_cannot_be_retried() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.finish(run.run_id, driver)
    with pytest.raises(RunNotRetryable):
        await harness.changing.retry(run.run_id, OPERATOR)


async def test_wiped_stream_is_made_good_with_later_attempts() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    harness.stream.wipe()
    driver.note_possible_loss()
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    sent = {
        attempt: {shard for *_, shard, number in harness.stream.message_ids if number == attempt}
        for attempt in (1, 2, 3)
    }
    assert sent[1] == sent[2] != set()
    assert not sent[3]
    assert not harness.runs.shards[run.run_id], "those of a closed run are deleted"


async def test_lost_half_of_a_shard_is_asked_again_without_the_other_half() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    sent = harness.stream.take(run.run_id)
    for sent_run, shard in sent:
        for sample in shard.samples[: len(shard.samples) // 2]:
            harness.record.answer(sent_run, sample, shard)
    ended = await harness.finish(run.run_id, driver)
    assert ended.state is RunState.COMPLETED
    halves = sum(len(shard.samples) // 2 for _, shard in sent)
    assert len(harness.asked) == len(set(harness.asked)) == 200 - halves


async def test_lost_reports_are_made_good_by_asking_for_the_counts() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    for sent_run, shard in harness.stream.take(run.run_id):
        for sample in shard.samples:
            harness.record.answer(sent_run, sample, shard)
    assert await harness.advance(driver, 10)
    ended = await harness.runs.get(run.run_id)
    assert ended.state is RunState.COMPLETED
    assert {attempt for *_, attempt in harness.stream.message_ids} == {1}


async def test_nothing_is_sent_again_while_a_worker_holds_the_messages() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 60)
    sent = harness.stream.sent[run.run_id]
    assert {shard.attempt for _, shard in sent} == {1}


async def test_new_leader_takes_the_run_over_where_it_stands() -> None:
    harness = SchedulerHarness()
    run, driver = await harness.start()
    await harness.advance(driver, 3)
    harness.fencing_token = harness.runs.begin_term()
    with pytest.raises(LeadershipLost):
        await harness.finish(run.run_id, driver)
    ended = await harness.finish(run.run_id, harness.driver(run.run_id))
    assert ended.state is RunState.COMPLETED


async def test_planning_that_broke_off_is_begun_anew() -> None:
    harness = SchedulerHarness()
    run, _ = await harness.start()
    planner = replace(harness.tools.planner)
    await planner.plan(harness.fencing_token, run)
    harness.runs.runs[run.run_id] = replace(await harness.runs.get(run.run_id), planned_epoch=0)
    ended = await harness.finish(run.run_id, harness.driver(run.run_id))
    assert ended.state is RunState.COMPLETED
    assert len(harness.record.sets) == 2
