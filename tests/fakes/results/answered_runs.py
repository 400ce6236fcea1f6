"""Runs of texts and their judges on a standing results service, what its doors show of them, and archives."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import grpc

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.values.judging.scale import read_scale, scale_options
from proctor.values.outcome import Outcome
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoringTarget
from tests.fakes.eventually import eventually
from tests.fakes.results.recorded_run import TEXT_SCORING, batch, plan_of, said
from tests.fakes.results.results_harness import ResultsHarness

YES_NO = MetricUse("verdict", scale_options(read_scale("yes-no")))


def row(at: int, prompt: Prompt, row_id: str, target: str = "right") -> StoredSample:
    digest = hashlib.sha256(repr((prompt, target)).encode()).digest()
    return StoredSample(at, at, digest, prompt, ScoringTarget(texts=(target,)), row_id=row_id)


def rows_of(prompts: Sequence[Prompt | str], salt: str = "row") -> list[StoredSample]:
    made = [prompt if isinstance(prompt, Prompt) else Prompt(prompt) for prompt in prompts]
    return [row(at, prompt, f"{salt}-{at}") for at, prompt in enumerate(made)]


async def answered_run(
    harness: ResultsHarness, samples: list[StoredSample], outcomes: list[Outcome]
) -> RunPlan:
    plan = plan_of([len(samples)], [await harness.store(samples)])
    rollouts = 1 + max((one.rollout for one in outcomes), default=0)
    plan = replace(
        plan, tasks=(replace(plan.tasks[0], task="rows", scoring=TEXT_SCORING),), rollouts=rollouts
    )
    await harness.open(plan)
    await harness.send(batch(plan.run_id, outcomes))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == len(outcomes)

    await eventually(all_recorded, "all outcomes are recorded")
    return plan


async def listed(harness: ResultsHarness, plan: RunPlan, status: int = 0, **wanted: Any) -> list[int]:
    """Numbers of the samples that match, over all pages."""
    request = results_pb2.ListOutcomesRequest(
        run_id=plan.run_id, page_size=2, filter=results_pb2.OutcomeFilter(**wanted)
    )
    request.status = outcome_pb2.OutcomeStatus.ValueType(status)
    found: list[int] = []
    while True:
        page = await harness.public.ListOutcomes(request)
        assert len(page.outcomes) <= 2
        found += [one.outcome.sample for one in page.outcomes]
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


async def side_by_side(
    harness: ResultsHarness, plans: Sequence[RunPlan], page_size: int = 2, **asked: Any
) -> list[answer_pb2.SideBySideRow]:
    request = answer_pb2.ListSideBySideRequest(
        run_ids=[plan.run_id for plan in plans], page_size=page_size, **asked
    )
    found: list[answer_pb2.SideBySideRow] = []
    while True:
        page = await harness.answers.ListSideBySide(request)
        found += page.rows
        request.page_token = page.next_page_token
        if not page.next_page_token:
            return found


def texts(shown: answer_pb2.SideBySideRow) -> list[str | None]:
    return [
        one.outcome.outcome.answer.text if one.outcome.outcome.HasField("answer") else None
        for one in shown.answers
    ]


async def archive(harness: ResultsHarness, run_id: str) -> None:
    """As the leader does, when all readers that began before are done."""

    async def is_archived() -> bool:
        await _settle(harness, run_id)
        request = run_record_pb2.ArchiveRunRecordRequest(run_id=run_id)
        try:
            return (await harness.records.ArchiveRunRecord(request)).is_done
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            # It is still compared with others.
            return False

    await eventually(is_archived, "the run is archived")


async def restore(harness: ResultsHarness, run_id: str) -> None:
    async def is_restored() -> bool:
        await _settle(harness, run_id)
        request = run_record_pb2.RestoreRunRecordRequest(run_id=run_id)
        return (await harness.records.RestoreRunRecord(request)).is_done

    await eventually(is_restored, "the run is restored")


async def _settle(harness: ResultsHarness, run_id: str) -> None:
    async with harness.database() as database:
        older = "UPDATE run_records SET archive_since = archive_since - interval '1 hour' WHERE run_id = $1"
        await database.execute(older, run_id)


async def judging_run(
    harness: ResultsHarness,
    judged: RunPlan,
    verdicts: Sequence[str],
    metrics: Sequence[MetricUse] = (YES_NO,),
    *,
    row_ids: Sequence[str] = (),
    state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_COMPLETED,
    **facts: Any,
) -> RunPlan:
    """A closed one whose judge said these verdicts, of answers 0.0, 1.0 and so on unless others are named.

    A verdict of several lines is the whole text of the judge.
    """
    asked = row_ids or [f"{at}.0" for at in range(len(verdicts))]
    # Of a pair the target is the place of the judged answer.
    samples = [row(at, Prompt(f"j{at}"), each, each.split(".")[-1]) for at, each in enumerate(asked)]
    plan = plan_of([len(verdicts)], [await harness.store(samples)])
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, tuple(metrics))
    task = replace(plan.tasks[0], task="correctness", scoring=scoring)
    named = RunFacts(judged.run_id, **{"model": f"p/{plan.run_id[:8]}", **facts})
    plan = replace(plan, tasks=(task,), facts=named)
    await harness.open(plan)
    texts = [one if "\n" in one else f"Verdict: {one}" for one in verdicts]
    await harness.send(batch(plan.run_id, [said(at, text) for at, text in enumerate(texts)]))

    async def all_recorded() -> bool:
        return await harness.recorded(plan.run_id) == len(verdicts)

    await eventually(all_recorded, "all verdicts are recorded")
    await close(harness, plan, state)
    return plan


async def close(
    harness: ResultsHarness,
    run: RunPlan,
    state: run_pb2.RunState.ValueType = run_pb2.RUN_STATE_COMPLETED,
) -> None:
    await harness.records.CloseRun(run_record_pb2.CloseRunRequest(run_id=run.run_id, epoch=1, state=state))
