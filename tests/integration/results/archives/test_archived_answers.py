"""An archived run shows, exports and compares what it did before, and its rows come back as they were."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import comparison_service_pb2, outcome_pb2, run_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.outcome import Answer, FailureClass
from proctor.values.sample import Prompt
from services.common.grpc.client import open_channel
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.callers import SCHEDULER
from tests.fakes.eventually import eventually
from tests.fakes.results.answered_runs import archive, restore
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

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORMS = ("JSONL", "CSV", "BATCH_OUTPUT", "BATCH_ERRORS", "LM_EVAL")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ResultsHarness]:
    store = tmp_path_factory.mktemp("objects").as_uri()
    async with results_harness(object_store=store) as made:
        yield made


def question(at: int) -> StoredSample:
    digest = hashlib.sha256(f"question {at}".encode()).digest()
    return StoredSample(at, at, digest, Prompt(f"What is {at} + 1?"), ScoringTarget(texts=(str(at + 1),)))


async def test_the_close_says_nearly_the_bytes_of_the_answers(harness: ResultsHarness) -> None:
    samples = 400
    plan = plan_of([samples], [await harness.store([question(at) for at in range(samples)])])
    plan = replace(plan, tasks=(replace(plan.tasks[0], scoring=TEXT_SCORING),))
    plan = await harness.open(plan)
    # Texts of every length.
    texts = [hashlib.sha512(str(at).encode()).hexdigest() * (1 + at % 40) for at in range(samples)]
    await harness.send(batch(plan.run_id, [said(at, text) for at, text in enumerate(texts)]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == samples

    await eventually(all_recorded, "everything is recorded")
    closed = await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    async with harness.database() as database:
        texts_bytes = await database.fetchval(
            """
            SELECT sum(pg_column_size(answer_text) + pg_column_size(prediction)) FROM outcomes
            WHERE run_id = $1
            """,
            plan.run_id,
        )
    assert 0.8 < closed.answer_bytes / (texts_bytes + 250 * samples) < 1.25


async def closed_run(harness: ResultsHarness, model: str, wrong: int) -> RunPlan:
    """Choices with two rollouts and questions in words; some failed, one is unlike the others in each way."""
    sets = [
        await harness.store([choice_sample(at) for at in range(6)]),
        await harness.store([question(at) for at in range(6)]),
    ]
    plan = plan_of([6, 6], sets, rollouts=1)
    tasks = (plan.tasks[0], replace(plan.tasks[1], scoring=TEXT_SCORING))
    facts = RunFacts("parity", 0, model, 1, "ann")
    plan = await harness.open(replace(plan, tasks=tasks, facts=facts))
    outcomes = [answered(at, at % 2) for at in range(5)] + [failed(5)]
    outcomes += [said(6 + at, str(at + 1)) for at in range(4) if at != wrong]
    outcomes += [said(6 + wrong, 'It is "?",\nüñí 🎉 ' + "long " * 200)]
    thought = Answer("<think>hm</think> 5", "length", reasoning="apart", body_json='{"choices": []}')
    outcomes += [replace(said(10, ""), result=thought), failed(11, FailureClass.REFUSED)]
    await harness.send(batch(plan.run_id, outcomes))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == 12

    await eventually(all_recorded, "everything is recorded")
    await harness.records.CloseRun(
        run_record_pb2.CloseRunRequest(run_id=plan.run_id, epoch=1, state=run_pb2.RUN_STATE_COMPLETED)
    )
    return plan


async def stored(harness: ResultsHarness, run_id: str) -> tuple[int, str | None]:
    """How many rows there are, and their digest."""
    async with harness.database() as database:
        row = await database.fetchrow(
            "SELECT count(*), md5(string_agg(o::text, ' ' ORDER BY sample, rollout)) FROM outcomes AS o "
            "WHERE run_id = $1",
            run_id,
        )
        assert row is not None
        return row[0], row[1]


async def listed(harness: ResultsHarness, plan: RunPlan, **asked: Any) -> list[Any]:
    request = results_pb2.ListOutcomesRequest(run_id=plan.run_id, page_size=3, **asked)
    found: list[Any] = []
    while True:
        page = await harness.public.ListOutcomes(request)
        found += page.outcomes
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


async def shown(harness: ResultsHarness, plan: RunPlan, other: RunPlan) -> Mapping[str, Any]:
    """All that is read of the answers of a run."""
    filters = {
        "text": results_pb2.OutcomeFilter(text="ÜÑÍ"),
        "reasoning": results_pb2.OutcomeFilter(text="apart"),
        "prompt": results_pb2.OutcomeFilter(text="what is 3"),
        "scores": results_pb2.OutcomeFilter(min_score=0.5),
        "lengths": results_pb2.OutcomeFilter(min_characters=2),
        "failures": results_pb2.OutcomeFilter(failure_class=outcome_pb2.FAILURE_CLASS_REFUSED),
    }
    found: dict[str, Any] = {
        "all": await listed(harness, plan),
        "failed": await listed(harness, plan, status=3),
    }
    for name, chosen in filters.items():
        found[name] = await listed(harness, plan, filter=chosen)
    for sort in range(1, len(results_pb2.OutcomeSort.keys())):
        found[f"sorted {sort}"] = await listed(harness, plan, sort=sort)
    beside = answer_pb2.ListSideBySideRequest(run_ids=[plan.run_id, other.run_id], task="t1", page_size=20)
    found["side by side"] = list((await harness.answers.ListSideBySide(beside)).rows)
    for form in FORMS:
        request = export_pb2.ExportRunRequest(
            run_id=plan.run_id, format=export_pb2.ExportFormat.Value(f"EXPORT_FORMAT_{form}"), task="t1"
        )
        found[form] = b"".join([piece.content async for piece in harness.exports.ExportRun(request)])
        if form in ("CSV", "JSONL"):
            request.status = outcome_pb2.OUTCOME_STATUS_SCORED
            pieces = [piece.content async for piece in harness.exports.ExportRun(request)]
            found[f"{form}, chosen"] = b"".join(pieces)
    async with open_channel(f"127.0.0.1:{harness.results.grpc.port}", signer=SCHEDULER) as channel:
        comparisons = comparison_grpc.ComparisonServiceStub(channel)
        compared = comparison_service_pb2.CompareRunsRequest(run_ids=[plan.run_id, other.run_id])
        found["compared"] = await comparisons.CompareRuns(compared)
        flips = comparison_service_pb2.ListFlipsRequest(
            first_run_id=plan.run_id, second_run_id=other.run_id, task="t1"
        )
        found["flips"] = await comparisons.ListFlips(flips)
        rescoring = rescore_grpc.RescoreServiceStub(channel)
        found["rescored"] = await rescoring.RescoreTask(
            rescore_pb2.RescoreTaskRequest(run_id=plan.run_id, task="t1")
        )
    return found


async def test_archived_runs_show_what_they_did_before(harness: ResultsHarness) -> None:
    plan, other = await closed_run(harness, "vllm/one", 1), await closed_run(harness, "vllm/two", 2)
    rows, before = await stored(harness, plan.run_id), await shown(harness, plan, other)
    await archive(harness, plan.run_id)
    assert await stored(harness, plan.run_id) == (0, None)
    assert await shown(harness, plan, other) == before
    await archive(harness, other.run_id)
    assert await shown(harness, plan, other) == before
    await restore(harness, plan.run_id)
    assert await stored(harness, plan.run_id) == rows
    assert await shown(harness, plan, other) == before
