"""Stored answers under another scoring, through the real service: no model is asked and nothing changes."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from uuid import uuid4

import grpc
import pytest
import pytest_asyncio

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_pb2, sample_pb2, summary_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import run_record_service_pb2_grpc as run_record_grpc
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse
from services.common.grpc.client import open_channel
from services.common.postgres import PostgresSession, connect_pool
from services.results.answers.postgres import PostgresListedOutcomes
from services.results.outcomes.outcome import ListedOutcome
from services.results.postgres import QUERIES, SCHEMA
from services.results.rescoring.rescore_task import RescoreTask, ScoringOverride
from services.results.runs.errors import EpochOver
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.run_plan import RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.callers import GATEWAY, SCHEDULER
from tests.fakes.eventually import eventually
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.recorded_run import (
    TEXT_SCORING,
    answered,
    batch,
    choice_sample,
    failed,
    plan_of,
    said,
)
from tests.fakes.results.results_harness import ResultsHarness, results_harness
from tests.fakes.results.stores import postgres_stores, show_summary_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

LAST_NUMBER = [
    {"name": "last", "filter": [{"function": "regex", "regex_pattern": "(\\d+)", "group_select": -1}]}
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness() -> AsyncIterator[ResultsHarness]:
    async with results_harness() as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rescoring(harness: ResultsHarness) -> "AsyncIterator[rescore_grpc.RescoreServiceAsyncStub]":
    async with open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel:
        yield rescore_grpc.RescoreServiceStub(channel)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def open_plan(harness: ResultsHarness) -> RunPlan:
    """Three questions in words: right but wordy, wrong, failed; and two choices, one of them right."""
    ordered = plan_of(
        [3, 2],
        [
            await harness.store([text_sample(at) for at in range(3)]),
            await harness.store([choice_sample(at) for at in range(2)]),
        ],
    )
    ordered = replace(ordered, tasks=(replace(ordered.tasks[0], scoring=TEXT_SCORING), ordered.tasks[1]))
    await harness.open(ordered)
    await harness.send(batch(ordered.run_id, [said(0, "First 9, then 6"), said(1, "none"), failed(2)]))
    await harness.send(batch(ordered.run_id, [answered(3), answered(4)]))

    async def all_recorded() -> bool:
        return await harness.recorded(ordered.run_id) == 5

    await eventually(all_recorded, "everything is recorded")
    return ordered


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plan(
    harness: ResultsHarness, open_plan: RunPlan, rescoring: "rescore_grpc.RescoreServiceAsyncStub"
) -> RunPlan:
    with pytest.raises(grpc.aio.AioRpcError, match="still takes outcomes"):
        await rescoring.RescoreTask(rescore_pb2.RescoreTaskRequest(run_id=open_plan.run_id, task="t0"))
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=open_plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    return open_plan


def text_sample(at: int) -> StoredSample:
    digest = hashlib.sha256(f"text {at}".encode()).digest()
    return StoredSample(at, at, digest, Prompt(f"What is {at} + 6?"), ScoringTarget(texts=(str(at + 6),)))


def mean(summary: summary_pb2.TaskSummary) -> float:
    return summary.metrics[0].mean


async def test_another_filter_finds_the_answer_in_the_stored_text(
    harness: ResultsHarness, rescoring: "rescore_grpc.RescoreServiceAsyncStub", plan: RunPlan
) -> None:
    request = rescore_pb2.RescoreTaskRequest(
        run_id=plan.run_id, task="t0", filters_json=json.dumps(LAST_NUMBER)
    )
    response = await rescoring.RescoreTask(request)
    assert (mean(response.recorded), mean(response.summary)) == (0.0, 0.5)
    assert (response.summary.answered, response.summary.failed, response.summary.unparsed) == (2, 1, 1)
    assert response.changed == 2

    kept = await harness.public.GetSummary(results_pb2.GetSummaryRequest(run_id=plan.run_id))
    assert mean(kept.summary.tasks[0]) == 0.0


async def test_other_metrics_over_the_same_answers(
    rescoring: "rescore_grpc.RescoreServiceAsyncStub", plan: RunPlan
) -> None:
    contains = sample_pb2.MetricUse(name="contains")
    response = await rescoring.RescoreTask(
        rescore_pb2.RescoreTaskRequest(run_id=plan.run_id, task="t0", metrics=[contains])
    )
    assert [(one.metric, one.mean) for one in response.summary.metrics] == [("contains", 0.5)]
    assert response.changed == 0

    normed = sample_pb2.MetricUse(name="acc_norm")
    response = await rescoring.RescoreTask(
        rescore_pb2.RescoreTaskRequest(run_id=plan.run_id, task="t1", metrics=[normed])
    )
    assert [one.metric for one in response.summary.metrics] == ["acc_norm"]


async def test_reasoning_is_left_out_or_kept_of_the_same_answers(
    harness: ResultsHarness, rescoring: "rescore_grpc.RescoreServiceAsyncStub"
) -> None:
    ordered = plan_of([1], [await harness.store([text_sample(0)])])
    scoring = replace(TEXT_SCORING, metrics=(MetricUse("contains"),), filters_json="")
    ordered = replace(ordered, tasks=(replace(ordered.tasks[0], scoring=scoring),))
    await harness.open(ordered)
    await harness.send(batch(ordered.run_id, [said(0, "<think>Is it 6?</think>It is five.")]))

    async def is_recorded() -> bool:
        return await harness.recorded(ordered.run_id) == 1

    await eventually(is_recorded, "it is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=ordered.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    request = rescore_pb2.RescoreTaskRequest(run_id=ordered.run_id, task="t0")
    means = {}
    for reasoning in run_pb2.Reasoning.values():
        request.reasoning = reasoning
        response = await rescoring.RescoreTask(request)
        means[reasoning] = (mean(response.recorded), mean(response.summary))
    assert means == {
        run_pb2.REASONING_UNSPECIFIED: (0.0, 0.0),
        run_pb2.REASONING_SEPARATE: (0.0, 0.0),
        run_pb2.REASONING_KEEP: (0.0, 1.0),
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"task": "t9"}, "must be one of the run's: t0, t1"),
        ({"filters_json": "[{]"}, "cannot be read"),
        ({"metrics": [sample_pb2.MetricUse(name="acc_norm")]}, "does not fit the answers"),
        ({"metrics": [sample_pb2.MetricUse(name="nothing")]}, "nothing"),
    ],
)
async def test_a_scoring_that_cannot_be_is_one_sentence(
    rescoring: "rescore_grpc.RescoreServiceAsyncStub",
    plan: RunPlan,
    changes: dict[str, object],
    sentence: str,
) -> None:
    request = rescore_pb2.RescoreTaskRequest(**{"run_id": plan.run_id, "task": "t0", **changes})  # type: ignore[arg-type]  # fields by name
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rescoring.RescoreTask(request)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert sentence in (refused.value.details() or "")


async def test_what_one_scoring_could_not_read_another_can(
    harness: ResultsHarness, rescoring: "rescore_grpc.RescoreServiceAsyncStub"
) -> None:
    slow = [{"name": "slow", "filter": [{"function": "regex", "regex_pattern": "(?:a|b|ab)*[cd]"}]}]
    ordered = plan_of([3], [await harness.store([text_sample(at) for at in range(3)])])
    scoring = replace(TEXT_SCORING, filters_json=json.dumps(slow))
    await harness.open(replace(ordered, tasks=(replace(ordered.tasks[0], scoring=scoring),)))
    reported = said(0, "ab" * 60 + "6")
    await harness.send(batch(ordered.run_id, [reported, said(1, "d"), failed(2)]))

    async def all_recorded() -> bool:
        return await harness.recorded(ordered.run_id) == 3

    await eventually(all_recorded, "everything is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=ordered.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    request = rescore_pb2.RescoreTaskRequest(
        run_id=ordered.run_id, task="t0", filters_json=json.dumps(LAST_NUMBER)
    )
    response = await rescoring.RescoreTask(request)
    assert (response.recorded.answered, response.recorded.failed) == (1, 2)
    assert (response.summary.answered, response.summary.failed, response.summary.unparsed) == (2, 1, 1)
    assert (mean(response.summary), response.changed) == (0.5, 2)


class RetriedMeanwhile(PostgresListedOutcomes):
    """The run is retried once its last answer was read."""

    async def chunks(
        self, plan: RunPlan, task_index: int, *, has_docs: bool
    ) -> AsyncIterator[Sequence[ListedOutcome]]:
        async for chunk in super().chunks(plan, task_index, has_docs=has_docs):
            yield chunk
        await PostgresRunRecords(self._session).open(plan, 2)


async def test_a_run_that_is_retried_meanwhile_is_refused(harness: ResultsHarness) -> None:
    plan = await harness.open_run_of(2)
    await harness.send(batch(plan.run_id, [answered(0), answered(1)]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == 2

    await eventually(all_recorded, "everything is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_FAILED)
    )
    async with await connect_pool(harness.postgres.address, schema=SCHEMA) as pool:
        session = PostgresSession(pool, QUERIES)
        stores = postgres_stores(session)
        rescore_task = RescoreTask(
            records=stores.records,
            sample_sets=stores.sample_sets,
            answers=RetriedMeanwhile(session),
            show_summary=show_summary_of(stores),
            scorer=InlineScorer(),
        )
        with pytest.raises(EpochOver):
            await rescore_task.rescore(plan.run_id, "t0", ScoringOverride())


async def test_results_take_signed_calls_only_and_records_of_the_scheduler(harness: ResultsHarness) -> None:
    address = f"127.0.0.1:{harness.results.grpc.port}"
    for signer in (None, GATEWAY):
        async with open_channel(address, signer=signer) as channel:
            request = run_record_pb2.DeleteRunRecordRequest(run_id=str(uuid4()))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await run_record_grpc.RunRecordServiceStub(channel).DeleteRunRecord(request)
        assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED, signer
