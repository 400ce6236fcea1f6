"""Stored answers under another scoring over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import asdict, dataclass

import grpc

from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import run_pb2
from proctor.values.scoring import MetricUse
from services.common.checked_fields import checked_id, checked_text
from services.common.grpc.server import RpcContext
from services.results.rescoring.rescore_task import RescoreTask, ScoringOverride
from services.results.summaries.proto import task_summary_to_proto

SERVICE_NAME = rescore_pb2.DESCRIPTOR.services_by_name["RescoreService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcRescoreApi(rescore_grpc.RescoreServiceServicer):
    rescore_task: RescoreTask

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        rescore_grpc.add_RescoreServiceServicer_to_server(self, server)

    async def RescoreTask(
        self, request: rescore_pb2.RescoreTaskRequest, context: RpcContext
    ) -> rescore_pb2.RescoreTaskResponse:
        other = ScoringOverride(
            tuple(MetricUse(use.name, use.options_json) for use in request.metrics),
            request.filters_json if request.HasField("filters_json") else None,
            request.reasoning == run_pb2.REASONING_KEEP if request.reasoning else None,
        )
        run_id, task = checked_id("run_id", request.run_id), checked_text("task", request.task)
        rescored = await self.rescore_task.rescore(run_id, task, other)
        return rescore_pb2.RescoreTaskResponse(
            summary=task_summary_to_proto(rescored.summary),
            recorded=task_summary_to_proto(rescored.recorded),
            changed=rescored.changed,
            unscored=rescored.unscored,
            unscored_answers=[rescore_pb2.UnscoredAnswer(**asdict(answer)) for answer in rescored.named],
        )
