"""Runs of a suite in order: the leaderboard and the history."""

from typing import TYPE_CHECKING

from proctor.client.gateway_calls import GatewayCalls
from proctor.v1 import leaderboard_service_pb2 as leaderboard_pb2
from proctor.v1 import leaderboard_service_pb2_grpc as standings_grpc

if TYPE_CHECKING:
    from proctor.v1.leaderboard_service_pb2_grpc import LeaderboardServiceAsyncStub


class StandingsClient:
    """`client.standings`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub: LeaderboardServiceAsyncStub = standings_grpc.LeaderboardServiceStub(calls.channel)

    async def leaderboard(
        self, request: leaderboard_pb2.GetLeaderboardRequest
    ) -> leaderboard_pb2.GetLeaderboardResponse:
        return await self._calls.call(self._stub.GetLeaderboard, request)

    async def history(self, request: leaderboard_pb2.GetHistoryRequest) -> leaderboard_pb2.GetHistoryResponse:
        return await self._calls.call(self._stub.GetHistory, request)
