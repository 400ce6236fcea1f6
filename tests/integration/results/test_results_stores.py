"""The promises of what results keeps, held by the fake in memory and by Postgres alike."""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from proctor.values.outcome import Answer, ChoiceScore, Failure, FailureClass, Outcome, OutcomeStatus
from proctor.values.run import RunState
from proctor.values.scoring import GroupMetric, TaskGroup
from proctor.values.usage import Timing, TokenUsage
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.ports import AnswerStore
from services.results.answers.postgres import PostgresAnswers
from services.results.outcomes.outcome import ScoredOutcome
from services.results.outcomes.ports import OutcomePage
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import EpochNotOpen, EpochOver, RunIncomplete
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.scoring.score import ScoringImpossible
from services.results.scoring.score_answer import score_answer
from services.results.statistics.figure import Figure
from services.results.summaries.ports import Stores
from services.results.summaries.summarize_run import SummarizeRun
from tests.fakes.results.memory_answers import MemoryAnswers
from tests.fakes.results.memory_results import MemoryRows, memory_stores
from tests.fakes.results.recorded_run import (
    answered,
    choice_sample,
    failed,
    logprob_answer,
    new_id,
    plan_of,
    said,
    scored,
)
from tests.fakes.results.stores import postgres_stores
from tests.harness.servers import postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

Rows = tuple[Stores, AnswerStore]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postgres_rows() -> AsyncIterator[Rows]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            session = PostgresSession(pool, QUERIES)
            stores = postgres_stores(session)
            yield stores, PostgresAnswers(session)


@pytest.fixture(params=["memory", "postgres"])
def rows(request: pytest.FixtureRequest, postgres_rows: Rows) -> Rows:
    if request.param == "postgres":
        return postgres_rows
    memory = MemoryRows()
    return memory_stores(memory), MemoryAnswers(memory)


@pytest.fixture
def stores(rows: Rows) -> Stores:
    return rows[0]


async def open_run(stores: Stores, size: int, rollouts: int = 1) -> RunPlan:
    sample_set_id = new_id()
    await stores.sample_sets.stage(sample_set_id, [choice_sample(at, sample_set_id) for at in range(size)])
    await stores.sample_sets.commit(sample_set_id, size)
    return (await stores.records.open(plan_of([size], [sample_set_id], rollouts=rollouts), 1)).plan


async def record(stores: Stores, plan: RunPlan, *outcomes: Outcome, epoch: int = 1) -> int:
    return await stores.outcomes.record([scored(plan.run_id, one, epoch) for one in outcomes])


async def recorded(rows: Rows, page: OutcomePage) -> list[ScoredOutcome]:
    stores, answers = rows
    return await answers.read(page.run_id, await stores.outcomes.page(page))


def all_of(plan: RunPlan) -> OutcomePage:
    return OutcomePage(plan.run_id, (0, -1), plan.end_sample, 1000)


async def test_the_first_answer_stays(rows: Rows, stores: Stores) -> None:
    plan = await open_run(stores, 2)
    assert await record(stores, plan, answered(0)) == 1
    assert await record(stores, plan, answered(0, 1, attempt=2)) == 0
    assert await record(stores, plan, failed(0, attempt=3)) == 0
    [kept] = await recorded(rows, all_of(plan))
    assert kept.outcome == answered(0)


async def test_each_field_of_an_answer_comes_back_as_itself(rows: Rows, stores: Stores) -> None:
    """Rows are written by place: two fields of one type would change places unseen."""
    plan = await open_run(stores, 3)
    choices = (ChoiceScore(-0.5, is_greedy=True, token_count=3),)
    answer = Answer("text", "length", choices, '{"id": "body"}', reasoning="why")
    usage, timing = TokenUsage(11, 12, 13, 14), Timing(0.5, 0.25, 0.125, 0.0625)
    outcome = Outcome(2, 0, 5, 6, answer, usage, timing)
    sent = ScoredOutcome(
        plan.run_id, 1, 0, outcome, OutcomeStatus.UNPARSED, "read", {"acc": 0.0}, is_reused=True
    )
    assert await stores.outcomes.record([sent]) == 1
    assert await recorded(rows, all_of(plan)) == [sent]


async def test_the_outcome_of_a_later_dispatch_replaces_a_failure(stores: Stores) -> None:
    plan = await open_run(stores, 2)
    await record(stores, plan, failed(0, FailureClass.TIMEOUT))
    assert await record(stores, plan, failed(0, FailureClass.RATE_LIMIT)) == 0
    assert await record(stores, plan, failed(0, FailureClass.ENGINE, attempt=2)) == 1
    progress = await stores.records.all_counts(plan)
    counts = progress.counts
    assert (counts.recorded, counts.failed, counts.failures) == (1, 1, {"engine": 1})
    assert await record(stores, plan, answered(0, attempt=3)) == 1
    progress = await stores.records.all_counts(plan)
    counts = progress.counts
    assert (counts.recorded, counts.failed, counts.failures, progress.shards) == (1, 0, {}, {0: 1})


@pytest.mark.parametrize("attempt", [1, 2], ids=["the same attempt", "an earlier attempt"])
async def test_an_answer_replaces_a_failure_of(rows: Rows, stores: Stores, attempt: int) -> None:
    plan = await open_run(stores, 1)
    await record(stores, plan, failed(0, FailureClass.TIMEOUT, attempt=attempt))
    unread = replace(answered(0), result=Failure(FailureClass.SCORING, "unreadable", Answer("so")))
    assert await record(stores, plan, unread) == 1
    assert await record(stores, plan, failed(0, FailureClass.ENGINE, attempt=3)) == 0
    assert await record(stores, plan, answered(0)) == 1
    [kept] = await recorded(rows, all_of(plan))
    assert kept.outcome == answered(0)
    counts = (await stores.records.all_counts(plan)).counts
    assert (counts.recorded, counts.failed, counts.usage) == (1, 0, answered(0).usage)


async def test_a_retry_without_an_answer_keeps_what_could_not_be_scored(rows: Rows, stores: Stores) -> None:
    plan = await open_run(stores, 1)
    unread = replace(answered(0), result=Failure(FailureClass.SCORING, "unreadable", Answer("so")))
    await record(stores, plan, unread)
    await stores.records.open(plan, 2)
    assert await record(stores, plan, failed(0, attempt=2), epoch=2) == 1
    [kept] = await recorded(rows, all_of(plan))
    assert kept.outcome == replace(unread, attempt=2)


async def test_an_outcome_that_moves_to_another_shard_is_counted_there(stores: Stores) -> None:
    plan = await open_run(stores, 2)
    await record(stores, plan, failed(0))
    await record(stores, plan, replace(answered(0, attempt=2), shard=9))
    shards = (await stores.records.all_counts(plan)).shards
    assert {shard: count for shard, count in shards.items() if count} == {9: 1}


async def test_a_later_epoch_counts_only_what_stays(stores: Stores) -> None:
    plan = await open_run(stores, 3)
    await record(stores, plan, answered(0), failed(1))
    await stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=True)
    assert await record(stores, plan, answered(2)) == 0

    reopened = await stores.records.open(plan, 2)

    progress = await stores.records.all_counts(plan)
    counts = progress.counts
    assert (counts.epoch, counts.recorded, counts.failed, progress.shards) == (2, 1, 0, {})
    assert await stores.outcomes.missing(reopened, 0, range(3)) == [1, 2]
    assert await record(stores, plan, answered(1), epoch=1) == 0
    assert await record(stores, plan, answered(1), epoch=2) == 1
    assert (await stores.records.all_counts(plan)).counts.recorded == 2


async def test_opening_again_changes_nothing_and_an_earlier_epoch_is_refused(stores: Stores) -> None:
    plan = await open_run(stores, 3)
    await record(stores, plan, failed(1))
    other = replace(plan, tasks=(), rollouts=7)
    assert (await stores.records.open(other, 1)).plan == plan
    assert (await stores.records.all_counts(plan)).counts.failed == 1
    with pytest.raises(EpochOver):
        await stores.records.open(plan, 0)


async def test_a_run_freezes_only_complete_unless_partial_is_allowed(stores: Stores) -> None:
    plan = await open_run(stores, 2)
    await record(stores, plan, answered(0))
    with pytest.raises(RunIncomplete):
        await stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=False)
    with pytest.raises(EpochNotOpen):
        await stores.records.freeze(plan, 2, RunState.COMPLETED, allow_partial=True)
    await record(stores, plan, failed(1))
    await stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=False)
    await stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=False)
    found = await stores.records.find(plan.run_id)
    assert found is not None
    assert found.is_frozen


async def test_what_a_run_was_ordered_as_and_how_it_ended_is_kept(stores: Stores) -> None:
    ordered = datetime(2026, 3, 1, 12, tzinfo=UTC)
    facts = RunFacts("glue", 2, "vllm/tiny", 7, "ann", ordered, 100, 3, ("rte", "wnli"))
    groups = (TaskGroup("glue", ("t0",), (GroupMetric("acc", is_weighted_by_size=False),)),)
    sample_set_id = new_id()
    await stores.sample_sets.stage(sample_set_id, [choice_sample(0, sample_set_id)])
    await stores.sample_sets.commit(sample_set_id, 1)
    plan = replace(plan_of([1], [sample_set_id]), facts=facts, groups=groups, max_failed_share=0.2)
    assert (await stores.records.open(plan, 1)).plan == plan

    await stores.records.freeze(plan, 1, RunState.FAILED, allow_partial=True)
    frozen = await stores.records.find(plan.run_id)
    assert frozen is not None
    assert (frozen.plan, frozen.state) == (plan, RunState.FAILED)
    assert frozen.frozen_at is not None

    reopened = await stores.records.open(plan, 2)
    assert (reopened.state, reopened.frozen_at) == (None, None)


async def test_the_first_summary_of_an_epoch_stays(stores: Stores) -> None:
    plan = await open_run(stores, 2)
    await record(stores, plan, answered(0), answered(1))
    await stores.records.freeze(plan, 1, RunState.COMPLETED, allow_partial=False)
    found = await stores.records.find(plan.run_id)
    assert found is not None
    summary = await SummarizeRun(stores, SystemClock()).summarize(found)
    assert await stores.summaries.keep(plan, summary) == summary
    assert await stores.summaries.keep(plan, replace(summary, total=99)) == summary
    assert await stores.summaries.find(plan.run_id, 1) == summary
    assert await stores.summaries.find(plan.run_id, 2) is None


async def test_figures_stay_in_the_order_of_the_task(stores: Stores) -> None:
    plan = await open_run(stores, 2)
    await stores.records.freeze(plan, 1, RunState.FAILED, allow_partial=True)
    found = await stores.records.find(plan.run_id)
    assert found is not None
    summary = await SummarizeRun(stores, SystemClock()).summarize(found)
    in_order = {"rougeL_max": Figure(), "mcc": Figure(), "acc": Figure()}
    summary = replace(summary, tasks=(replace(summary.tasks[0], figures=in_order),))
    kept = await stores.summaries.keep(plan, summary)
    assert list(kept.tasks[0].figures) == ["rougeL_max", "mcc", "acc"]


async def test_what_engines_said_is_kept_side_by_side(stores: Stores) -> None:
    plan = await open_run(stores, 1)
    for hardware in ("H200", "A100", "H200"):
        await stores.records.add_environment(plan.run_id, {"engine": "vllm", "hardware": hardware})
    progress = await stores.records.all_counts(plan)
    counts = progress.counts
    assert counts.environment == {"engine": "vllm", "hardware": "A100; H200"}


async def test_only_the_named_shards_are_counted(stores: Stores) -> None:
    plan = await open_run(stores, 25)
    await record(stores, plan, answered(0), answered(11), answered(12), answered(24))
    [progress] = await stores.records.counts([plan], [(plan.run_id, 1), (plan.run_id, 7)])
    assert progress.shards == {1: 2}
    assert progress.counts.recorded == 4


async def test_an_answer_comes_back_as_it_was_sent(rows: Rows, stores: Stores) -> None:
    plan = await open_run(stores, 4)
    odd = replace(answered(1), result=Failure(FailureClass.ENGINE, "it broke — ½"))
    said_in_vain = Answer(
        "ab",
        "stop",
        (ChoiceScore(-1.0, is_greedy=True, token_count=1), ChoiceScore(-math.inf, is_greedy=False)),
    )
    unscored = replace(answered(3), result=Failure(FailureClass.SCORING, "too slow", said_in_vain))
    sent = [answered(0), odd, said(2, "line\nbreak 😀"), unscored]
    await record(stores, plan, *sent)
    assert [one.outcome for one in await recorded(rows, all_of(plan))] == sent


async def test_pages_follow_sample_and_rollout_and_filter_by_status(stores: Stores) -> None:
    plan = await open_run(stores, 4, rollouts=2)
    await record(
        stores, plan, *[answered(sample, rollout=rollout) for sample in (0, 2) for rollout in (0, 1)]
    )
    await record(stores, plan, failed(3, rollout=1))

    async def keys(page: OutcomePage) -> Sequence[tuple[int, int]]:
        return await stores.outcomes.page(page)

    page = OutcomePage(plan.run_id, (0, 0), 4, 2)
    assert await keys(page) == [(0, 1), (2, 0)]
    assert await keys(replace(page, after=(2, 0), page_size=9)) == [(2, 1), (3, 1)]
    assert await keys(replace(page, status=OutcomeStatus.FAILED)) == [(3, 1)]


async def test_failures_of_an_earlier_epoch_are_not_listed(rows: Rows, stores: Stores) -> None:
    plan = await open_run(stores, 3)
    await record(stores, plan, failed(0, FailureClass.RATE_LIMIT), answered(1), failed(2))
    await stores.records.open(plan, 2)
    await record(stores, plan, failed(2, FailureClass.ENGINE), epoch=2)
    page = OutcomePage(plan.run_id, (0, -1), 3, 10)
    of_all, of_failed = [
        [(one.outcome.sample, one.epoch) for one in await recorded(rows, asked)]
        for asked in (page, replace(page, status=OutcomeStatus.FAILED))
    ]
    assert of_all == [(1, 1), (2, 2)]
    assert of_failed == [(2, 2)]


async def test_weights_that_are_no_numbers_are_not_scored_later_either(rows: Rows, stores: Stores) -> None:
    plan = await open_run(stores, 1)
    overflowed = logprob_answer((-1.0, math.nan), (True, False), finish_reason="stop")
    sent = replace(answered(0), result=Failure(FailureClass.SCORING, "no number", overflowed))
    await record(stores, plan, sent)
    [kept] = await recorded(rows, all_of(plan))
    assert kept.outcome.answer is not None
    with pytest.raises(ScoringImpossible):
        score_answer(plan.scorings[0], choice_sample(0).target, kept.outcome.answer)
