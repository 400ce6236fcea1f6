"""Comparisons over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

import grpc

from proctor.v1 import comparison_service_pb2 as pb
from proctor.v1 import comparison_service_pb2_grpc as pb_grpc
from services.results.checked_fields import checked_id, checked_text, checked_texts
from services.results.comparison.compare_runs import CompareQuery, CompareRuns
from services.results.comparison.list_flips import FlipsQuery, ListFlips
from services.results.comparison.proto import comparison_to_proto, flip_to_proto

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["ComparisonService"].full_name


class GrpcComparisonApi(pb_grpc.ComparisonServiceServicer):
    def __init__(self, compare_runs: CompareRuns, list_flips: ListFlips) -> None:
        self._compare_runs = compare_runs
        self._list_flips = list_flips

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        pb_grpc.add_ComparisonServiceServicer_to_server(self, server)

    async def CompareRuns(
        self, request: pb.CompareRunsRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.CompareRunsResponse:
        query = CompareQuery(
            tuple(checked_id("run_ids", run_id) for run_id in request.run_ids),
            checked_texts("models", request.models),
            checked_text("suite", request.suite),
            checked_texts("metrics", request.metrics),
            checked_texts("tasks", request.tasks),
            request.is_forced,
        )
        return pb.CompareRunsResponse(comparison=comparison_to_proto(await self._compare_runs.compare(query)))

    async def ListFlips(
        self, request: pb.ListFlipsRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ListFlipsResponse:
        query = FlipsQuery(
            (
                checked_id("first_run_id", request.first_run_id),
                checked_id("second_run_id", request.second_run_id),
            ),
            checked_text("task", request.task),
            checked_text("metric", request.metric),
            request.page_size,
            request.page_token,
        )
        page = await self._list_flips.list_page(query)
        return pb.ListFlipsResponse(
            flips=[flip_to_proto(flip) for flip in page.flips],
            next_page_token=page.next_page_token,
            total=page.total,
        )
