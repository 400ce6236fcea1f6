"""Answers side by side, and marks on them, over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

import grpc

from proctor.v1 import answer_service_pb2 as pb
from proctor.v1 import answer_service_pb2_grpc as pb_grpc
from services.results.answers.list_side_by_side import ListSideBySide, SideBySideQuery
from services.results.answers.mark_answers import MarkAnswers, MarkOrder, NamedAnswer
from services.results.answers.proto import filter_from_proto, row_to_proto
from services.results.checked_fields import checked_id, checked_text

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["AnswerService"].full_name


class GrpcAnswerApi(pb_grpc.AnswerServiceServicer):
    def __init__(self, list_side_by_side: ListSideBySide, mark_answers: MarkAnswers) -> None:
        self._list_side_by_side = list_side_by_side
        self._mark_answers = mark_answers

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        pb_grpc.add_AnswerServiceServicer_to_server(self, server)

    async def ListSideBySide(
        self, request: pb.ListSideBySideRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.ListSideBySideResponse:
        query = SideBySideQuery(
            [checked_id("run_ids", run_id) for run_id in request.run_ids],
            checked_text("task", request.task),
            request.only_differing,
            filter_from_proto(request.filter),
            request.page_size,
            request.page_token,
        )
        page = await self._list_side_by_side.list_page(query)
        rows = [row_to_proto(row) for row in page.rows]
        return pb.ListSideBySideResponse(rows=rows, next_page_token=page.next_page_token)

    async def MarkAnswers(
        self, request: pb.MarkAnswersRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.MarkAnswersResponse:
        order = MarkOrder(
            checked_id("run_id", request.run_id),
            [
                NamedAnswer(key.sample, key.rollout, checked_text("answers.row_id", key.row_id))
                for key in request.answers
            ],
            request.is_golden,
            checked_text("user", request.user),
        )
        return pb.MarkAnswersResponse(golden_count=await self._mark_answers.mark(order))
