"""The leaderboard and the history over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

import grpc

from proctor.v1 import leaderboard_service_pb2 as pb
from proctor.v1 import leaderboard_service_pb2_grpc as pb_grpc
from services.results.leaderboard.list_history import ListHistory
from services.results.leaderboard.proto import (
    history_query_from_proto,
    history_to_proto,
    leaderboard_query_from_proto,
    leaderboard_to_proto,
)
from services.results.leaderboard.rank_models import RankModels

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["LeaderboardService"].full_name


class GrpcLeaderboardApi(pb_grpc.LeaderboardServiceServicer):
    def __init__(self, rank_models: RankModels, list_history: ListHistory) -> None:
        self._rank_models = rank_models
        self._list_history = list_history

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        pb_grpc.add_LeaderboardServiceServicer_to_server(self, server)

    async def GetLeaderboard(
        self, request: pb.GetLeaderboardRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.GetLeaderboardResponse:
        return leaderboard_to_proto(await self._rank_models.rank(leaderboard_query_from_proto(request)))

    async def GetHistory(
        self, request: pb.GetHistoryRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> pb.GetHistoryResponse:
        return history_to_proto(await self._list_history.list_page(history_query_from_proto(request)))
