"""Runs of a suite in order: the leaderboard and the history."""

from typing import TYPE_CHECKING

from proctor.client.gateway_calls import GatewayCalls
from proctor.v1 import standings_service_pb2 as standings_pb2
from proctor.v1 import standings_service_pb2_grpc as standings_grpc

if TYPE_CHECKING:
    from proctor.v1.standings_service_pb2_grpc import StandingsServiceAsyncStub


class StandingsClient:
    """`client.standings`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub: StandingsServiceAsyncStub = standings_grpc.StandingsServiceStub(calls.channel)

    async def leaderboard(
        self, request: standings_pb2.GetLeaderboardRequest
    ) -> standings_pb2.GetLeaderboardResponse:
        return await self._calls.call(self._stub.GetLeaderboard, request)

    async def history(self, request: standings_pb2.GetHistoryRequest) -> standings_pb2.GetHistoryResponse:
        return await self._calls.call(self._stub.GetHistory, request)
