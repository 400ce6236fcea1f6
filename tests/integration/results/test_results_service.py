"""The results service from its doors: what neighbours store, send and ask, on a real Postgres and NATS."""

import math
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import (
    outcome_pb2,
    run_pb2,
    summary_pb2,
    work_messages_pb2,
)
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, FailureClass
from proctor.values.sample import Prompt
from proctor.values.usage import Timing, TokenUsage
from services.common.grpc.errors import remote_error
from services.results.outcomes.outcome import OutcomeBatch
from services.results.outcomes.page_bytes import MAX_BYTES_PER_PAGE
from services.results.runs.run_plan import RunPlan
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import answered, batch, choice_sample, failed, new_id, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness, results_harness, sample_to_proto

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


async def close(
    harness: ResultsHarness, plan: RunPlan, epoch: int = 1, *, partial: bool = False
) -> summary_pb2.RunSummary:
    request = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=epoch, allow_partial=partial)
    return (await harness.records.CloseRun(request)).summary


async def missing(
    harness: ResultsHarness, plan: RunPlan, epoch: int, page_size: int = 0
) -> list[tuple[int, int]]:
    found, token = [], ""
    while True:
        page = await harness.records.ListMissing(
            run_record_pb2.ListMissingRequest(
                run_id=plan.run_id, epoch=epoch, page_size=page_size, page_token=token
            )
        )
        found += [(one.rollout, one.sample) for one in page.missing]
        token = page.next_page_token
        if not token:
            return found


async def refusal(call: Awaitable[object]) -> tuple[str, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    error = remote_error(refused.value)
    return error.reason, error.message


async def test_a_run_is_recorded_closed_and_read_back(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(20, 5)
    outcomes = [answered(sample) for sample in range(20)] + [answered(20 + at, at % 2) for at in range(5)]
    await harness.send(batch(plan.run_id, outcomes[:12]))
    await harness.send(batch(plan.run_id, outcomes[12:]))
    await eventually(lambda: recorded_is(harness, plan, 25), "all outcomes are recorded")

    summary = await close(harness, plan)

    first, second = summary.tasks
    assert (summary.total, summary.answered, summary.is_partial) == (25, 25, False)
    assert [figure.metric for figure in first.metrics] == ["acc", "mcc"]
    assert (first.metrics[0].mean, first.metrics[0].n) == (0.5, 20)
    assert (second.metrics[0].mean, second.metrics[1].mean) == (1.0, 1.0)
    assert summary.usage.prompt_tokens == 25 * 7
    assert summary.mean_timing.first_token_seconds == 0.125
    assert not summary.mean_timing.HasField("queue_seconds")
    assert (summary.timing.total.n, summary.timing.total.p99) == (25, 0.25)
    assert not summary.timing.HasField("queue")
    assert await close(harness, plan) == summary
    public = await harness.public.GetSummary(results_pb2.GetSummaryRequest(run_id=plan.run_id))
    assert public.summary == summary


async def recorded_is(harness: ResultsHarness, plan: RunPlan, count: int) -> bool:
    return await harness.recorded(plan.run_id) == count


@pytest.mark.parametrize(
    ("usage", "timing"),
    [
        (TokenUsage(2**63 - 1, 2**63 - 1), Timing(0.5)),
        (TokenUsage(-1, -(2**63)), Timing(0.5)),
        (TokenUsage(7, 1), Timing(1e308, 1e308, 1e308, 1e308)),
        (TokenUsage(7, 1), Timing(5e-324, math.inf, math.nan, -1.0)),
    ],
)
async def test_numbers_that_no_answer_has_keep_no_run_from_its_end(
    harness: ResultsHarness, usage: TokenUsage, timing: Timing
) -> None:
    plan = await harness.open_run_of(4)
    outcomes = [replace(answered(at), usage=usage, timing=timing) for at in range(4)]
    await harness.send(batch(plan.run_id, outcomes))
    await eventually(lambda: recorded_is(harness, plan, 4), "all outcomes are recorded")
    summary = await close(harness, plan)
    assert (summary.answered, summary.failed) == (4, 0)
    assert 0 <= summary.usage.prompt_tokens <= 4 * 7
    assert 0 <= summary.timing.total.p99 <= 0.5
    assert not summary.timing.HasField("queue")


async def test_progress_is_reported_as_absolute_counts(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(20)
    await harness.send(batch(plan.run_id, [answered(sample) for sample in range(10)]))
    await harness.send(batch(plan.run_id, [failed(10), answered(11)]))
    await eventually(lambda: recorded_is(harness, plan, 12), "all outcomes are recorded")
    await eventually(
        lambda: plan.run_id in harness.reports and harness.reports[plan.run_id][-1].tasks[0].recorded == 12,
        "the last report has all",
    )
    report = harness.reports[plan.run_id][-1]
    assert report.tasks[0] == work_messages_pb2.TaskCounts(task="t0", recorded=12, failed=1)
    assert dict(report.failures) == {"timeout": 1}
    assert dict(report.environment) == {"engine": "fake"}
    assert not (await harness.counts(plan.run_id)).shards
    counts = await harness.counts(plan.run_id, includes_shards=True)
    assert {(one.shard, one.recorded) for one in counts.shards} == {(0, 10), (1, 2)}


async def test_the_same_samples_are_stored_once(harness: ResultsHarness) -> None:
    samples = [choice_sample(position, "once") for position in range(7)]
    first, second = await harness.store(samples), await harness.store(samples)
    assert first == second
    async with harness.database() as database:
        assert (
            await database.fetchval("SELECT count(*) FROM samples WHERE digest = $1", samples[0].digest) == 1
        )


async def test_a_repeated_commit_of_a_duplicate_gives_the_same_set(harness: ResultsHarness) -> None:
    samples = [choice_sample(position, "again") for position in range(3)]
    kept = await harness.store(samples)
    request = await harness.put(samples)
    answers = [await harness.records.CommitSampleSet(request) for _ in range(2)]
    assert [answer.sample_set_id for answer in answers] == [kept, kept]


async def test_samples_are_read_in_the_order_asked_without_targets(harness: ResultsHarness) -> None:
    sample_set_id = await harness.store([choice_sample(position, "read") for position in range(10)])
    request = run_record_pb2.ReadSamplesRequest(sample_set_id=sample_set_id, positions=[7, 2])
    samples = (await harness.records.ReadSamples(request)).samples
    assert [sample.position for sample in samples] == [7, 2]
    assert samples[0].prompt.text == "7 is"
    assert list(samples[0].choices) == [" even", " odd"]
    assert not samples[0].HasField("target")
    assert samples[0].digest == b""


async def test_what_is_missing_comes_in_pages_by_rollout(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(6, 4, rollouts=2)
    done = [answered(sample, rollout=0) for sample in range(10) if sample != 3]
    done += [answered(sample, rollout=1) for sample in (0, 9)] + [failed(5, rollout=1)]
    await harness.send(batch(plan.run_id, done))
    await eventually(lambda: recorded_is(harness, plan, 12), "all outcomes are recorded")
    expected = [(0, 3)] + [(1, sample) for sample in (1, 2, 3, 4, 6, 7, 8)]
    assert await missing(harness, plan, 1) == expected
    assert await missing(harness, plan, 1, page_size=3) == expected


async def test_rows_that_are_not_asked_are_neither_missing_nor_recorded(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(3, rollouts=2, row_rollouts=(2, 0, 1))
    asked = [(0, 0), (0, 2), (1, 0)]
    assert await missing(harness, plan, 1) == asked
    strangers = [answered(1), answered(2, rollout=1)]
    done = [answered(sample, rollout=rollout) for rollout, sample in asked]
    await harness.send(batch(plan.run_id, [*strangers, *done]))
    await eventually(lambda: recorded_is(harness, plan, 3), "what is asked is recorded")
    summary = await close(harness, plan)
    assert (summary.is_partial, summary.answered, summary.tasks[0].total) == (False, 3, 3)


async def test_a_run_is_not_closed_while_samples_are_missing(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(5)
    await harness.send(batch(plan.run_id, [answered(0)]))
    await eventually(lambda: recorded_is(harness, plan, 1), "it is recorded")
    request = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1)
    assert await refusal(harness.records.CloseRun(request)) == (
        "RUN_INCOMPLETE",
        f"Run {plan.run_id} still misses 4 outcomes.",
    )
    summary = await close(harness, plan, partial=True)
    assert (summary.is_partial, summary.answered, summary.total) == (True, 1, 5)


async def test_tokens_that_no_outcome_counts_are_those_of_the_run(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(5)
    await harness.send(batch(plan.run_id, [answered(0)]))
    await eventually(lambda: recorded_is(harness, plan, 1), "it is recorded")
    report = (await harness.records.GetCounts(run_record_pb2.GetCountsRequest(run_id=plan.run_id))).report
    unscored = outcome_pb2.TokenUsage(prompt_tokens=1000, completion_tokens=50, reasoning_tokens=7)
    request = run_record_pb2.CloseRunRequest(
        run_id=plan.run_id, epoch=1, allow_partial=True, unscored=unscored
    )
    for _ in range(2):
        usage = (await harness.records.CloseRun(request)).summary.usage
        assert usage.prompt_tokens == report.usage.prompt_tokens + 1000
        assert usage.completion_tokens == report.usage.completion_tokens + 50
        assert usage.reasoning_tokens == report.usage.reasoning_tokens + 7


async def test_outcomes_of_a_closed_run_change_nothing(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(5)
    await harness.send(batch(plan.run_id, [answered(0)]))
    await eventually(lambda: recorded_is(harness, plan, 1), "it is recorded")
    summary = await close(harness, plan, partial=True)
    await harness.send(batch(plan.run_id, [answered(1)]))
    await eventually(lambda: nothing_waits(harness), "the late message is taken")
    assert await harness.recorded(plan.run_id) == 1
    assert await close(harness, plan) == summary


async def test_late_outcomes_of_a_deleted_run_are_taken_and_dropped(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(5)
    await harness.send(batch(plan.run_id, [answered(0)]))
    await eventually(lambda: recorded_is(harness, plan, 1), "it is recorded")
    await close(harness, plan, partial=True)
    for _ in range(2):
        await harness.records.DeleteRunRecord(run_record_pb2.DeleteRunRecordRequest(run_id=plan.run_id))
    await harness.send(batch(plan.run_id, [answered(1)]))
    await eventually(lambda: nothing_waits(harness), "the late message is taken")
    said = "not found among results: it does not exist, or ended before it had a sample."
    not_found = ("RUN_NOT_FOUND", f"Run {plan.run_id} {said}")
    assert await refusal(harness.counts(plan.run_id)) == not_found
    assert await refusal(close(harness, plan)) == not_found
    query = "SELECT count(*) FROM outcomes WHERE run_id = $1::uuid"

    async def are_outcomes_deleted() -> bool:
        async with harness.database() as database:
            return bool(await database.fetchval(query, plan.run_id) == 0)

    await eventually(are_outcomes_deleted, "the sweep has deleted the outcomes", 60)


async def nothing_waits(harness: ResultsHarness) -> bool:
    return await harness.waiting_outcomes() == 0


async def test_a_retry_asks_only_for_what_is_missing_or_failed(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(4)
    first = [answered(0), failed(1, FailureClass.RATE_LIMIT), answered(2)]
    await harness.send(batch(plan.run_id, first))
    await eventually(lambda: recorded_is(harness, plan, 3), "all outcomes are recorded")
    await close(harness, plan, partial=True)

    await harness.open(plan, epoch=2)

    assert await missing(harness, plan, 2) == [(0, 1), (0, 3)]
    assert await harness.recorded(plan.run_id) == 2
    await harness.send(batch(plan.run_id, [answered(1), answered(3)], epoch=1))  # too late
    await harness.send(batch(plan.run_id, [answered(1), failed(3)], epoch=2))
    await eventually(lambda: recorded_is(harness, plan, 4), "all outcomes are recorded")
    summary = await close(harness, plan, epoch=2)
    assert (summary.answered, dict(summary.failures)) == (3, {"timeout": 1})


async def test_outcomes_are_listed_beside_their_samples(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(3, 3)
    await harness.send(batch(plan.run_id, [answered(sample) for sample in range(5)] + [failed(5)]))
    await eventually(lambda: recorded_is(harness, plan, 6), "all outcomes are recorded")

    async def page(**asked: object) -> results_pb2.ListOutcomesResponse:
        return await harness.public.ListOutcomes(
            results_pb2.ListOutcomesRequest(run_id=plan.run_id, **asked)  # type: ignore[arg-type]  # fields by name
        )

    first = await page(page_size=4)
    rest = await page(page_size=4, page_token=first.next_page_token)
    listed = [*first.outcomes, *rest.outcomes]
    assert [one.outcome.sample for one in listed] == [0, 1, 2, 3, 4, 5]
    assert rest.next_page_token == ""
    shown = listed[4]
    assert (shown.task, shown.prompt, shown.target, shown.prediction) == ("t1", "1 is", "odd", "even")
    assert (shown.scores["acc"], shown.outcome.answer.choices[1].logprob) == (0.0, -2.0)
    only_failed = await page(status=outcome_pb2.OUTCOME_STATUS_FAILED)
    assert [one.outcome.failure.message for one in only_failed.outcomes] == ["It did not work."]
    assert [one.outcome.sample for one in (await page(task="t1")).outcomes] == [3, 4, 5]


async def test_a_page_of_long_prompts_fits_into_a_message(harness: ResultsHarness) -> None:
    prompt = Prompt("word " * 100_000)
    samples = [replace(choice_sample(position, "long"), prompt=prompt) for position in range(40)]
    sample_set_id = await harness.store(samples, chunk_samples=10)
    plan = await harness.open(plan_of([40], [sample_set_id]))
    await harness.send(batch(plan.run_id, [answered(sample) for sample in range(40)]))
    await eventually(lambda: recorded_is(harness, plan, 40), "all outcomes are recorded")
    listed: list[int] = []
    request = results_pb2.ListOutcomesRequest(run_id=plan.run_id, page_size=1000)
    while not listed or request.page_token:
        page = await harness.public.ListOutcomes(request)
        assert page.ByteSize() <= MAX_BYTES_PER_PAGE * 1.1
        listed += [one.outcome.sample for one in page.outcomes]
        request.page_token = page.next_page_token
    assert listed == list(range(40))


async def test_an_answer_that_does_not_fit_its_sample_is_a_failure_not_a_wrong_answer(
    harness: ResultsHarness,
) -> None:
    plan = await harness.open_run_of(2)
    await harness.send(batch(plan.run_id, [said(0, "no weights"), answered(1, 1)]))
    await eventually(lambda: recorded_is(harness, plan, 2), "all outcomes are recorded")
    summary = await close(harness, plan)
    assert (summary.failed, summary.tasks[0].metrics[0].mean) == (1, 1.0)


async def test_messages_that_make_no_sense_hold_nothing_up(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(2)
    await harness.jetstream.publish(f"outcomes.{plan.run_id}", b"\xff\xff", new_id())
    await harness.send(batch(new_id(), [answered(0)]))  # an unknown run
    await harness.send(batch(plan.run_id, [answered(99), answered(0, rollout=3), answered(1)]))
    await eventually(lambda: recorded_is(harness, plan, 1), "the good one is recorded")
    await eventually(lambda: nothing_waits(harness), "nothing is left")


async def test_what_cannot_be_done_is_refused_in_one_sentence(harness: ResultsHarness) -> None:
    run_id = new_id()
    records = harness.records
    staging_id = new_id()
    chunk = [sample_to_proto(choice_sample(position, "gap")) for position in (0, 2)]
    await records.PutSamples(run_record_pb2.PutSamplesRequest(staging_id=staging_id, samples=chunk))
    commit = run_record_pb2.CommitSampleSetRequest(staging_id=staging_id, sample_count=3)
    read = run_record_pb2.ReadSamplesRequest(sample_set_id=staging_id, positions=[0])
    assert (await refusal(records.CommitSampleSet(commit)))[0] == "SAMPLE_SET_INCOMPLETE"
    assert (await refusal(records.ReadSamples(read)))[0] == "SAMPLE_SET_NOT_FOUND"
    assert (await refusal(records.GetCounts(run_record_pb2.GetCountsRequest(run_id=run_id))))[
        0
    ] == "RUN_NOT_FOUND"
    assert await refusal(records.GetCounts(run_record_pb2.GetCountsRequest(run_id="x"))) == (
        "INVALID_PARAMETER",
        "run_id must be a UUID.",
    )
    plan = await harness.open_run_of(1)
    stale = run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=0)
    assert (await refusal(records.CloseRun(stale)))[0] == "EPOCH_OVER"
    page = results_pb2.ListOutcomesRequest(run_id=plan.run_id, page_token="nonsense")
    assert (await refusal(harness.public.ListOutcomes(page)))[0] == "INVALID_PAGE_TOKEN"


async def test_numbers_that_no_enum_has_are_refused_in_one_sentence(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(1)
    page = results_pb2.ListOutcomesRequest(run_id=plan.run_id)
    page.status = outcome_pb2.OutcomeStatus.ValueType(9)
    opening = run_record_pb2.OpenRunRequest(run_id=new_id(), epoch=1, rollouts=1)
    opening.scoring_method = run_pb2.ScoringMethod.ValueType(9)
    assert await refusal(harness.public.ListOutcomes(page)) == (
        "INVALID_PARAMETER",
        "status must be one of 1 (SCORED), 2 (UNPARSED), 3 (FAILED), not 9.",
    )
    reason, sentence = await refusal(harness.records.OpenRun(opening))
    assert reason == "INVALID_PARAMETER"
    assert sentence.startswith("scoring_method must be one of ")


async def test_a_run_without_stored_samples_is_refused(harness: ResultsHarness) -> None:
    plan = plan_of([3])
    sample_set_id = plan.tasks[0].sample_set_id
    refused = await refusal(harness.open(plan))
    assert refused == ("SAMPLE_SET_NOT_FOUND", f"Sample set {sample_set_id} not found.")
    counts = run_record_pb2.GetCountsRequest(run_id=plan.run_id)
    assert (await refusal(harness.records.GetCounts(counts)))[0] == "RUN_NOT_FOUND"


async def test_a_nul_in_a_sample_is_refused_and_in_an_answer_replaced(harness: ResultsHarness) -> None:
    sample = choice_sample(0, "nul")
    message = sample_to_proto(sample)
    message.prompt.text = "before\0after"
    put = run_record_pb2.PutSamplesRequest(staging_id=new_id(), samples=[message])
    assert (await refusal(harness.records.PutSamples(put)))[0] == "INVALID_PARAMETER"

    plan = await harness.open_run_of(2)
    weighed = answered(1, 1)
    assert isinstance(weighed.result, Answer)
    odd = replace(weighed.result, text="a\0b")
    sent = OutcomeBatch(plan.run_id, 1, [answered(0), replace(weighed, result=odd)], {"engine": "a\0b"})
    await harness.send(sent)
    await eventually(lambda: recorded_is(harness, plan, 2), "both are recorded")
    listed = await harness.public.ListOutcomes(results_pb2.ListOutcomesRequest(run_id=plan.run_id))
    assert listed.outcomes[1].outcome.answer.text == "a\ufffdb"
    assert dict((await harness.counts(plan.run_id)).environment) == {"engine": "a\ufffdb"}
