"""Results of runs: stored answers, comparisons, the leaderboard and the history."""

from collections.abc import AsyncGenerator

from proctor.client.calls import GatewayCalls
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import comparison_pb2, comparison_service_pb2, leaderboard_service_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc

# Rescoring reads a whole run.
_RESCORE_SECONDS = 300.0


class AnswerClient:
    """`client.answers`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._rescoring = rescore_grpc.RescoreServiceStub(calls.channel)
        self._answers = answer_grpc.AnswerServiceStub(calls.channel)
        self._exports = export_grpc.ExportServiceStub(calls.channel)

    async def rescore(self, request: rescore_pb2.RescoreTaskRequest) -> rescore_pb2.RescoreTaskResponse:
        return await self._calls.call(self._rescoring.RescoreTask, request, _RESCORE_SECONDS)

    def export(self, request: export_pb2.ExportRunRequest) -> AsyncGenerator[export_pb2.ExportRunResponse]:
        """Chunks of the file, the first one with its name. The file is complete only after the last chunk."""
        return self._calls.stream(self._exports.ExportRun, request)

    def export_golden(
        self, request: export_pb2.ExportGoldenAnswersRequest
    ) -> AsyncGenerator[export_pb2.ExportGoldenAnswersResponse]:
        """Chunks, like `export`."""
        return self._calls.stream(self._exports.ExportGoldenAnswers, request)

    async def side_by_side(
        self, request: answer_pb2.ListSideBySideRequest
    ) -> tuple[list[answer_pb2.SideBySideRow], str]:
        """One full page of rows, and the token of the next page, empty on the last one.

        The server examines a limited number of rows per call, so a page may take several calls.
        """
        asked = answer_pb2.ListSideBySideRequest()
        asked.CopyFrom(request)
        found: list[answer_pb2.SideBySideRow] = []
        while True:
            page = await self._calls.call(self._answers.ListSideBySide, asked)
            found += page.rows
            wanted = request.page_size or len(found)
            if not page.next_page_token or (found and len(found) >= wanted):
                return found, page.next_page_token
            asked.page_token = page.next_page_token
            asked.page_size = max(0, request.page_size - len(found))

    async def mark(self, request: answer_pb2.MarkAnswersRequest) -> answer_pb2.MarkAnswersResponse:
        """Marks all answers that are named, or none. Returns how many marks the run has then."""
        return await self._calls.call(self._answers.MarkAnswers, request)


class ComparisonClient:
    """`client.comparisons`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub = comparison_grpc.ComparisonServiceStub(calls.channel)

    async def compare(self, request: comparison_service_pb2.CompareRunsRequest) -> comparison_pb2.Comparison:
        return (await self._calls.call(self._stub.CompareRuns, request)).comparison

    async def flips(
        self, request: comparison_service_pb2.ListFlipsRequest
    ) -> AsyncGenerator[comparison_pb2.Flip]:
        """Every sample with different scores, from the requested page to the last one."""
        asked = comparison_service_pb2.ListFlipsRequest()
        asked.CopyFrom(request)
        while True:
            page = await self._calls.call(self._stub.ListFlips, asked)
            for flip in page.flips:
                yield flip
            if not page.next_page_token:
                return
            asked.page_token = page.next_page_token


class LeaderboardClient:
    """`client.leaderboard`."""

    def __init__(self, calls: GatewayCalls) -> None:
        self._calls = calls
        self._stub = leaderboard_grpc.LeaderboardServiceStub(calls.channel)

    async def get(
        self, request: leaderboard_service_pb2.GetLeaderboardRequest
    ) -> leaderboard_service_pb2.GetLeaderboardResponse:
        return await self._calls.call(self._stub.GetLeaderboard, request)

    async def history(
        self, request: leaderboard_service_pb2.ListHistoryRequest
    ) -> leaderboard_service_pb2.ListHistoryResponse:
        return await self._calls.call(self._stub.ListHistory, request)
