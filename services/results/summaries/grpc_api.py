"""The API of results for the scheduler over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import run_record_service_pb2 as run_record_pb2
from proctor.v1 import run_record_service_pb2_grpc as run_record_grpc
from proctor.v1 import sample_pb2
from proctor.values.run import RunState
from proctor.wire.values import DECISION, USAGE
from services.common.checked_fields import checked_choice, checked_id, invalid_field
from services.common.grpc.server import RpcContext
from services.results.decisions.decide_runs import DecideRuns, DecisionQuery
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.proto import logged_from_proto
from services.results.outcomes.record_logged import RecordLogged
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.runs.open_run import OpenRun
from services.results.runs.ports import RunRecordStore
from services.results.runs.proto import plan_from_proto, progress_to_proto, scoring_from_proto, task_to_proto
from services.results.samples.proto import sample_from_proto
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.summaries.close_run import CloseRun
from services.results.summaries.ports import ArchiveSteps
from services.results.summaries.proto import summary_to_proto

SERVICE_NAME = run_record_pb2.DESCRIPTOR.services_by_name["RunRecordService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcRecordApi(run_record_grpc.RunRecordServiceServicer):
    store_sample_set: StoreSampleSet
    read_samples: ReadSamples[sample_pb2.Sample]
    open_run: OpenRun
    records: RunRecordStore
    list_missing: ListMissing
    close_run: CloseRun
    decide_runs: DecideRuns
    reuse_answers: ReuseAnswers
    record_logged: RecordLogged
    delete_run: DeleteRunRecord
    archives: ArchiveSteps

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        run_record_grpc.add_RunRecordServiceServicer_to_server(self, server)

    async def PutSamples(
        self, request: run_record_pb2.PutSamplesRequest, context: RpcContext
    ) -> run_record_pb2.PutSamplesResponse:
        samples = [sample_from_proto(sample) for sample in request.samples]
        scoring = scoring_from_proto(request.scoring) if request.HasField("scoring") else None
        staging_id = checked_id("staging_id", request.staging_id)
        await self.store_sample_set.stage(staging_id, samples, scoring)
        return run_record_pb2.PutSamplesResponse()

    async def CommitSampleSet(
        self, request: run_record_pb2.CommitSampleSetRequest, context: RpcContext
    ) -> run_record_pb2.CommitSampleSetResponse:
        staging_id = checked_id("staging_id", request.staging_id)
        kept = await self.store_sample_set.commit(
            staging_id, request.sample_count, request.project_id, request.content_hash
        )
        return run_record_pb2.CommitSampleSetResponse(sample_set_id=kept.sample_set_id, digest=kept.digest)

    async def ReadSamples(
        self, request: run_record_pb2.ReadSamplesRequest, context: RpcContext
    ) -> run_record_pb2.ReadSamplesResponse:
        sample_set_id = checked_id("sample_set_id", request.sample_set_id)
        samples = await self.read_samples.read(sample_set_id, request.positions)
        return run_record_pb2.ReadSamplesResponse(samples=samples)

    async def OpenRun(
        self, request: run_record_pb2.OpenRunRequest, context: RpcContext
    ) -> run_record_pb2.OpenRunResponse:
        checked_id("run_id", request.run_id)
        code = {digest: dict(each.files) for digest, each in request.code.items()}
        record = await self.open_run.open(plan_from_proto(request), request.epoch, code)
        return run_record_pb2.OpenRunResponse(tasks=[task_to_proto(task) for task in record.plan.tasks])

    async def ReuseAnswers(
        self, request: run_record_pb2.ReuseAnswersRequest, context: RpcContext
    ) -> run_record_pb2.ReuseAnswersResponse:
        run_id = checked_id("run_id", request.run_id)
        reused = await self.reuse_answers.reuse(run_id, request.epoch, request.environment)
        return run_record_pb2.ReuseAnswersResponse(reused=reused)

    async def RecordLogged(
        self, request: run_record_pb2.RecordLoggedRequest, context: RpcContext
    ) -> run_record_pb2.RecordLoggedResponse:
        run_id = checked_id("run_id", request.run_id)
        logged = [logged_from_proto(one) for one in request.outcomes]
        recorded = await self.record_logged.record(run_id, request.epoch, logged)
        return run_record_pb2.RecordLoggedResponse(recorded=recorded)

    async def GetCounts(
        self, request: run_record_pb2.GetCountsRequest, context: RpcContext
    ) -> run_record_pb2.GetCountsResponse:
        record = await self.records.get(checked_id("run_id", request.run_id))
        counts = await self.records.all_counts(record.plan, includes_shards=request.includes_shards)
        return run_record_pb2.GetCountsResponse(report=progress_to_proto(counts))

    async def ListMissing(
        self, request: run_record_pb2.ListMissingRequest, context: RpcContext
    ) -> run_record_pb2.ListMissingResponse:
        run_id = checked_id("run_id", request.run_id)
        page = await self.list_missing.list_page(run_id, request.epoch, request.page_size, request.page_token)
        missing = [
            run_record_pb2.MissingSample(sample=sample, rollout=rollout) for rollout, sample in page.missing
        ]
        return run_record_pb2.ListMissingResponse(missing=missing, next_page_token=page.next_page_token)

    async def DecideRuns(
        self, request: run_record_pb2.DecideRunsRequest, context: RpcContext
    ) -> run_record_pb2.DecideRunsResponse:
        query = DecisionQuery(
            checked_id("run_id", request.run_id),
            checked_id("base_run_id", request.base_run_id),
            request.seed,
            request.alpha,
            request.margin_points if request.HasField("margin_points") else None,
        )
        decision = await self.decide_runs.decide(query)
        return run_record_pb2.DecideRunsResponse(decision=DECISION.to_proto(decision) if decision else None)

    async def CloseRun(
        self, request: run_record_pb2.CloseRunRequest, context: RpcContext
    ) -> run_record_pb2.CloseRunResponse:
        run_id = checked_id("run_id", request.run_id)
        state = _final_state(request.state)
        closing = await self.close_run.close(
            run_id,
            request.epoch,
            state,
            allow_partial=request.allow_partial,
            unscored=USAGE.from_proto(request.unscored),
        )
        if closing.summary is None:
            return run_record_pb2.CloseRunResponse(progress=closing.share)
        return run_record_pb2.CloseRunResponse(
            summary=summary_to_proto(closing.summary),
            progress=closing.share,
            answer_bytes=await self.archives.size_bytes(run_id),
        )

    async def ArchiveRunRecord(
        self, request: run_record_pb2.ArchiveRunRecordRequest, context: RpcContext
    ) -> run_record_pb2.ArchiveRunRecordResponse:
        is_done = await self.archives.archive(checked_id("run_id", request.run_id))
        return run_record_pb2.ArchiveRunRecordResponse(is_done=is_done)

    async def RestoreRunRecord(
        self, request: run_record_pb2.RestoreRunRecordRequest, context: RpcContext
    ) -> run_record_pb2.RestoreRunRecordResponse:
        is_done = await self.archives.restore(checked_id("run_id", request.run_id))
        return run_record_pb2.RestoreRunRecordResponse(is_done=is_done)

    async def DeleteRunRecord(
        self, request: run_record_pb2.DeleteRunRecordRequest, context: RpcContext
    ) -> run_record_pb2.DeleteRunRecordResponse:
        await self.delete_run.delete(checked_id("run_id", request.run_id))
        return run_record_pb2.DeleteRunRecordResponse()


def _final_state(number: int) -> RunState | None:
    """None where the caller gives none."""
    state = checked_choice("state", RunState, number) if number else None
    if state is not None and not state.is_final:
        raise invalid_field("state", f"must be final, not {state}")
    return state
