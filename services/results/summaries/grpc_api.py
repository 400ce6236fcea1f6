"""The API of results for the scheduler over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import run_record_service_pb2 as pb
from proctor.v1 import run_record_service_pb2_grpc as pb_grpc
from proctor.v1 import sample_pb2
from proctor.values.run import RunState
from services.common.checked_fields import checked_choice, checked_id, invalid_field
from services.common.grpc.server import RpcContext
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.runs.open_run import OpenRun
from services.results.runs.ports import RunRecordStore
from services.results.runs.proto import plan_from_proto, progress_to_proto, scoring_from_proto, task_to_proto
from services.results.samples.proto import sample_from_proto
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.summaries.close_run import CloseRun
from services.results.summaries.proto import summary_to_proto

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["RunRecordService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcRecordApi(pb_grpc.RunRecordServiceServicer):
    store_sample_set: StoreSampleSet
    read_samples: ReadSamples[sample_pb2.Sample]
    open_run: OpenRun
    records: RunRecordStore
    list_missing: ListMissing
    close_run: CloseRun
    reuse_answers: ReuseAnswers
    delete_run: DeleteRunRecord

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        pb_grpc.add_RunRecordServiceServicer_to_server(self, server)

    async def PutSamples(self, request: pb.PutSamplesRequest, context: RpcContext) -> pb.PutSamplesResponse:
        samples = [sample_from_proto(sample) for sample in request.samples]
        recipe = scoring_from_proto(request.scoring) if request.HasField("scoring") else None
        staging_id = checked_id("staging_id", request.staging_id)
        await self.store_sample_set.stage(staging_id, samples, recipe)
        return pb.PutSamplesResponse()

    async def CommitSampleSet(
        self, request: pb.CommitSampleSetRequest, context: RpcContext
    ) -> pb.CommitSampleSetResponse:
        staging_id = checked_id("staging_id", request.staging_id)
        kept = await self.store_sample_set.commit(staging_id, request.sample_count)
        return pb.CommitSampleSetResponse(sample_set_id=kept.set_id, digest=kept.digest)

    async def ReadSamples(
        self, request: pb.ReadSamplesRequest, context: RpcContext
    ) -> pb.ReadSamplesResponse:
        set_id = checked_id("sample_set_id", request.sample_set_id)
        samples = await self.read_samples.read(set_id, request.positions)
        return pb.ReadSamplesResponse(samples=samples)

    async def OpenRun(self, request: pb.OpenRunRequest, context: RpcContext) -> pb.OpenRunResponse:
        checked_id("run_id", request.run_id)
        record = await self.open_run.open(plan_from_proto(request), request.epoch)
        return pb.OpenRunResponse(tasks=[task_to_proto(task) for task in record.plan.tasks])

    async def ReuseAnswers(
        self, request: pb.ReuseAnswersRequest, context: RpcContext
    ) -> pb.ReuseAnswersResponse:
        run_id = checked_id("run_id", request.run_id)
        reused = await self.reuse_answers.reuse(run_id, request.epoch, request.environment)
        return pb.ReuseAnswersResponse(reused=reused)

    async def GetCounts(self, request: pb.GetCountsRequest, context: RpcContext) -> pb.GetCountsResponse:
        record = await self.records.get(checked_id("run_id", request.run_id))
        counts = await self.records.all_counts(record.plan)
        return pb.GetCountsResponse(report=progress_to_proto(counts))

    async def ListMissing(
        self, request: pb.ListMissingRequest, context: RpcContext
    ) -> pb.ListMissingResponse:
        run_id = checked_id("run_id", request.run_id)
        page = await self.list_missing.list_page(run_id, request.epoch, request.page_size, request.page_token)
        missing = [pb.MissingSample(sample=sample, rollout=rollout) for rollout, sample in page.missing]
        return pb.ListMissingResponse(missing=missing, next_page_token=page.next_page_token)

    async def CloseRun(self, request: pb.CloseRunRequest, context: RpcContext) -> pb.CloseRunResponse:
        run_id = checked_id("run_id", request.run_id)
        state = _final_state(request.state)
        closing = await self.close_run.close(
            run_id, request.epoch, state, allow_partial=request.allow_partial
        )
        summary = None if closing.summary is None else summary_to_proto(closing.summary)
        return pb.CloseRunResponse(summary=summary, progress=closing.share)

    async def DeleteRunRecord(
        self, request: pb.DeleteRunRecordRequest, context: RpcContext
    ) -> pb.DeleteRunRecordResponse:
        await self.delete_run.delete(checked_id("run_id", request.run_id))
        return pb.DeleteRunRecordResponse()


def _final_state(number: int) -> RunState | None:
    """None where the caller gives none."""
    state = checked_choice("state", RunState, number) if number else None
    if state is not None and not state.is_final:
        raise invalid_field("state", f"must be final, not {state}")
    return state
