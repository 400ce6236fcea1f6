"""Results' record of runs over gRPC: sample sets, counts, what is missing, closing."""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TypeVar

import grpc

from proctor.v1 import (
    outcome_pb2,
    sample_pb2,
    summary_pb2,
)
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import run_record_service_pb2_grpc as run_record_grpc
from proctor.values.comparison import DEFAULT_DECISION_ALPHA, Decision
from proctor.values.generation import DEFAULT_MAX_TOKENS, GenerationParams
from proctor.values.names.suite_name import base_name
from proctor.values.outcome import FailureClass
from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import INSTRUCTION_VERSION, OutputType, PromptForm, ScoringMethod, TaskScoring
from proctor.values.usage import TokenUsage
from proctor.wire.enums import number_of
from proctor.wire.values import DECISION, GROUP, PRICE, SAMPLE, SCORING, USAGE
from proctor.wire.well_known import time_to_proto
from services.common.errors import RemoteError
from services.common.grpc.errors import remote_error
from services.scheduler.planning.ports import ClosingProgress, CommittedSet, PlanToOpen, TaskToOpen
from services.scheduler.planning.shard import MissingSample
from services.scheduler.progress.nats import report_from_proto
from services.scheduler.progress.progress_tracker import ProgressReport
from services.scheduler.runs.lifecycle.run import PlannedTask, Run
from services.scheduler.runs.orders.run_order import params_for
from services.scheduler.suites.rendering.sample import RenderedSample

Response = TypeVar("Response")

# Each call reads one page, so this bounds an outage and not the work.
_CALL_SECONDS = 20.0
# Pages that are looked through for the example of a class; each is a window over the run.
_EXAMPLE_PAGES = 10
# Targets may be long patterns, each of which is read.
_PUT_SECONDS = 60.0
# Closing computes the figures of the whole run.
_CLOSE_SECONDS = 600.0


def request_digest(run: Run, task: PlannedTask) -> bytes:
    """SHA-256 over model, server, parameters, stops, and how choices and prompts are put.

    Not included: the pool, the number of rollouts (an answer belongs to one), and whether answers stream.
    Log-likelihood scored choices have no generation parameters. Parameters of a data set's row are part of
    the sample; unset ones are the engine's.
    """
    order = run.order
    is_text = task.output_type is OutputType.GENERATE_UNTIL
    method = ScoringMethod.GENERATE if is_text else run.scoring_method
    is_loglikelihood = method is ScoringMethod.LOGLIKELIHOOD
    request: dict[str, object] = {
        "model": order.model,
        "base_url": order.base_url,
        "scoring_method": method,
        "prompt_form": order.prompt_form,
        "truncation": order.truncation,
        "params": None if is_loglikelihood else asdict(params_for(order.params, task.generation)),
        "stop": None if is_loglikelihood else task.stop,
    }
    # Only where they are set: a key for all would change the digests of others, and stored answers not fit.
    if order.dataset_id:
        request["use_engine_defaults"] = True
    elif order.keeps_reasoning and request["stop"] and order.prompt_form is not PromptForm.COMPLETION:
        # The server applies them, also to reasoning (decision 0055).
        request["sends_stops"] = True
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def task_to_proto(task: TaskToOpen, run: Run, *, completes_text: bool = False) -> sample_pb2.PlannedTask:
    planned = task.planned
    is_text = planned.output_type is OutputType.GENERATE_UNTIL
    params = params_for(run.order.params, planned.generation) if is_text else GenerationParams()
    return sample_pb2.PlannedTask(
        task=planned.task,
        version=planned.version,
        sample_set_id=planned.sample_set_id,
        first_sample=planned.first_sample,
        sample_count=planned.sample_count,
        scoring=SCORING.to_proto(replace(task.scoring, keeps_reasoning=run.order.keeps_reasoning)),
        num_fewshot=planned.num_fewshot,
        is_stand_in=planned.is_stand_in,
        row_source=planned.row_source,
        row_source_revision=planned.row_source_revision,
        stop=planned.stop,
        max_tokens=params.max_tokens or 0,
        temperature=params.temperature,
        request_digest=request_digest(run, planned),
        definition_digest=task.facts.get("definition", ""),
        samples_digest=task.facts.get("samples", ""),
        request_json=json.dumps(_request(run, task, completes_text=completes_text), sort_keys=True),
    )


def _request(run: Run, task: TaskToOpen, *, completes_text: bool) -> Mapping[str, object]:
    """What the requests of a task have beside the samples, with the defaults that workers take.

    `completes_text`: the pool continues a plain text where the order leaves the form open.
    """
    order, planned = run.order, task.planned
    is_choice = planned.output_type is OutputType.MULTIPLE_CHOICE
    is_text = planned.output_type is OutputType.GENERATE_UNTIL
    is_loglikelihood = not is_text and run.scoring_method is ScoringMethod.LOGLIKELIHOOD
    is_continued = is_loglikelihood or completes_text
    form = order.prompt_form or (PromptForm.COMPLETION if is_continued else PromptForm.CHAT)
    if is_loglikelihood:
        return {"prompt_form": form}
    params = params_for(order.params, planned.generation)
    if not order.dataset_id:
        params = replace(
            params,
            temperature=0.0 if params.temperature is None else params.temperature,
            max_tokens=params.max_tokens or DEFAULT_MAX_TOKENS,
        )
    found: dict[str, object] = {
        **asdict(params),
        "prompt_form": form,
        "stop": planned.stop,
        "choice_instruction": INSTRUCTION_VERSION if is_choice else "",
        "agent": task.facts.get("agent", ""),
        "agent_kind": order.agent_kind,
    }
    return {name: value for name, value in found.items() if value not in (None, "", (), {})}


def facts_to_proto(run: Run, missing_tasks: Sequence[str]) -> run_record_pb2.RunFacts:
    return run_record_pb2.RunFacts(
        benchmark=base_name(run.order.benchmark),
        suite_version=run.suite_version,
        model=run.order.model,
        project_id=run.order.project_id,
        user=run.user,
        created_at=time_to_proto(run.created_at),
        limit=run.order.limit,
        num_fewshot=run.order.num_fewshot,
        missing_tasks=missing_tasks,
        price=PRICE.to_proto(run.price) if run.price else None,
        dataset_name=run.dataset_name,
        against_run_id=run.order.judge.against_run_id if run.order.judge else "",
    )


class GrpcRunRecord:
    """A client of RunRecordService; failures are raised as `RemoteError`.

    `completing_pools`: those that continue a plain text where an order leaves the form open.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        max_failed_share: float | None = None,
        completing_pools: Collection[str] = (),
    ) -> None:
        self._record = run_record_grpc.RunRecordServiceStub(channel)
        self._results = results_grpc.ResultsServiceStub(channel)
        self._max_failed_share = max_failed_share
        self._completing_pools = completing_pools

    async def put_samples(
        self, staging_id: str, samples: Sequence[RenderedSample], scoring: TaskScoring | None
    ) -> None:
        request = run_record_pb2.PutSamplesRequest(
            staging_id=staging_id, scoring=SCORING.to_proto(scoring) if scoring else None
        )
        for sample in samples:
            SAMPLE.fill(request.samples.add(), sample)
        await _answer(self._record.PutSamples(request, timeout=_PUT_SECONDS))

    async def commit_sample_set(
        self, staging_id: str, sample_count: int, project_id: int, content_hash: bytes
    ) -> CommittedSet:
        request = run_record_pb2.CommitSampleSetRequest(
            staging_id=staging_id,
            sample_count=sample_count,
            project_id=project_id,
            content_hash=content_hash,
        )
        response = await _answer(self._record.CommitSampleSet(request, timeout=_CLOSE_SECONDS))
        return CommittedSet(response.sample_set_id, response.digest)

    async def read_samples(self, sample_set_id: str, positions: Sequence[int]) -> Sequence[sample_pb2.Sample]:
        """Reads samples for the wire: they go on to workers as they are, without a domain form in between."""
        request = run_record_pb2.ReadSamplesRequest(sample_set_id=sample_set_id, positions=positions)
        response = await _answer(self._record.ReadSamples(request, timeout=_CALL_SECONDS))
        return response.samples

    async def open_run(self, run: Run, plan: PlanToOpen) -> Sequence[str]:
        request = run_record_pb2.OpenRunRequest(
            run_id=run.run_id,
            epoch=run.epoch,
            tasks=[
                task_to_proto(task, run, completes_text=run.pool in self._completing_pools)
                for task in plan.tasks
            ],
            rollouts=run.order.rollouts,
            row_rollouts=run.order.row_rollouts,
            scoring_method=number_of(run.scoring_method),
            truncation=number_of(run.order.truncation),
            facts=facts_to_proto(run, plan.missing_tasks),
            groups=[GROUP.to_proto(group) for group in plan.groups],
            max_failed_share=self._max_failed_share,
            code={
                task.scoring.code_digest: run_record_pb2.CodeFiles(files=task.code)
                for task in plan.tasks
                if task.scoring.code_digest
            },
        )
        response = await _answer(self._record.OpenRun(request, timeout=_CLOSE_SECONDS))
        return [task.sample_set_id for task in response.tasks]

    async def reuse_answers(self, run: Run, environment: Mapping[str, str]) -> int:
        request = run_record_pb2.ReuseAnswersRequest(
            run_id=run.run_id, epoch=run.epoch, environment=environment
        )
        response = await _answer(self._record.ReuseAnswers(request, timeout=_CLOSE_SECONDS))
        return response.reused

    async def counts(self, run_id: RunId, *, includes_shards: bool = False) -> ProgressReport:
        request = run_record_pb2.GetCountsRequest(run_id=run_id, includes_shards=includes_shards)
        response = await _answer(self._record.GetCounts(request, timeout=_CALL_SECONDS))
        return report_from_proto(response.report)

    async def missing(self, run_id: RunId, epoch: int) -> AsyncIterator[MissingSample]:
        request = run_record_pb2.ListMissingRequest(run_id=run_id, epoch=epoch)
        while True:
            response = await _answer(self._record.ListMissing(request, timeout=_CALL_SECONDS))
            for item in response.missing:
                yield MissingSample(item.sample, item.rollout)
            if not response.next_page_token:
                return
            request.page_token = response.next_page_token

    async def close_run(
        self, run: Run, state: RunState, *, allow_partial: bool, unscored: TokenUsage
    ) -> RunCounts | ClosingProgress | None:
        request = run_record_pb2.CloseRunRequest(
            run_id=run.run_id,
            epoch=run.epoch,
            allow_partial=allow_partial,
            state=number_of(state),
            unscored=USAGE.to_proto(unscored),
        )
        try:
            response = await _answer(self._record.CloseRun(request, timeout=_CLOSE_SECONDS))
            if not response.HasField("summary"):
                return ClosingProgress(response.progress)
            # The summary holds no environment, so the counts are read beside it.
            report = await self.counts(run.run_id)
        except RemoteError as error:
            if error.reason == "RUN_NOT_FOUND":
                return None
            raise
        counts = counts_from_summary(response.summary, dict(report.counts.environment))
        return replace(counts, answer_bytes=response.answer_bytes)

    async def decide(self, run: Run) -> Decision | None:
        wanted = run.order.until_decided
        assert wanted is not None
        both = [wanted.against_run_id, run.run_id] if wanted.is_base else [run.run_id, wanted.against_run_id]
        request = run_record_pb2.DecideRunsRequest(
            run_id=both[0],
            base_run_id=both[1],
            seed=wanted.seed,
            alpha=wanted.alpha or DEFAULT_DECISION_ALPHA,
            margin_points=wanted.margin_points,
        )
        response = await _answer(self._record.DecideRuns(request, timeout=_CALL_SECONDS))
        return DECISION.from_proto(response.decision) if response.HasField("decision") else None

    async def delete_run(self, run_id: RunId) -> None:
        request = run_record_pb2.DeleteRunRecordRequest(run_id=run_id)
        await _answer(self._record.DeleteRunRecord(request, timeout=_CALL_SECONDS))

    async def archive_run(self, run_id: RunId) -> bool:
        request = run_record_pb2.ArchiveRunRecordRequest(run_id=run_id)
        return (await _answer(self._record.ArchiveRunRecord(request, timeout=_CALL_SECONDS))).is_done

    async def restore_run(self, run_id: RunId) -> bool:
        request = run_record_pb2.RestoreRunRecordRequest(run_id=run_id)
        return (await _answer(self._record.RestoreRunRecord(request, timeout=_CALL_SECONDS))).is_done

    async def failure_example(self, run_id: RunId, failure_class: str) -> str:
        """One page after the other: a page of a filtered list may be empty and not the last."""
        request = results_pb2.ListOutcomesRequest(
            run_id=run_id,
            page_size=1,
            status=outcome_pb2.OUTCOME_STATUS_FAILED,
            filter=results_pb2.OutcomeFilter(failure_class=number_of(FailureClass(failure_class))),
        )
        for _ in range(_EXAMPLE_PAGES):
            response = await _answer(self._results.ListOutcomes(request, timeout=_CALL_SECONDS))
            if response.outcomes:
                return response.outcomes[0].outcome.failure.message
            request.page_token = response.next_page_token
            if not request.page_token:
                break
        return ""


async def _answer(call: Awaitable[Response]) -> Response:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise remote_error(error) from error


def counts_from_summary(summary: summary_pb2.RunSummary, environment: dict[str, str]) -> RunCounts:
    return RunCounts(
        epoch=summary.epoch,
        tasks=tuple(
            TaskCounts(task.task, task.answered + task.failed, task.failed, task.unparsed)
            for task in summary.tasks
        ),
        failures=dict(summary.failures),
        environment=environment,
        usage=USAGE.from_proto(summary.usage),
    )
