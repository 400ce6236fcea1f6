"""What the HTTP door asks of results: figures, comparisons, standings and files, one method per call."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import grpc

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import comparison_pb2, results_service_pb2, results_service_pb2_grpc, summary_pb2
from proctor.v1 import comparison_service_pb2 as comparing_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparing_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import leaderboard_service_pb2 as leaderboard_pb2
from proctor.v1 import leaderboard_service_pb2_grpc as standings_grpc
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from services.common.errors import ErrorKind, RemoteError
from services.gateway.backends.calls import RESULTS, BackendCalls

if TYPE_CHECKING:
    from proctor.v1.answer_service_pb2_grpc import AnswerServiceAsyncStub
    from proctor.v1.comparison_service_pb2_grpc import ComparisonServiceAsyncStub
    from proctor.v1.export_service_pb2_grpc import ExportServiceAsyncStub
    from proctor.v1.leaderboard_service_pb2_grpc import LeaderboardServiceAsyncStub
    from proctor.v1.rescore_service_pb2_grpc import RescoreServiceAsyncStub
    from proctor.v1.results_service_pb2_grpc import ResultsServiceAsyncStub

# Scoring a whole run again takes longer than looking something up.
_RESCORE_PATIENCE = 10
# A file is made once to know how long it is: a million rows in half a minute on a busy machine.
_MEASURE_PATIENCE = 10


class ResultsBackend:
    """Results behind the gateway."""

    def __init__(self, channel: grpc.aio.Channel, *, timeout_seconds: float) -> None:
        self._figures: ResultsServiceAsyncStub = results_service_pb2_grpc.ResultsServiceStub(channel)
        self._comparisons: ComparisonServiceAsyncStub = comparing_grpc.ComparisonServiceStub(channel)
        self._standings: LeaderboardServiceAsyncStub = standings_grpc.LeaderboardServiceStub(channel)
        self._rescoring: RescoreServiceAsyncStub = rescore_grpc.RescoreServiceStub(channel)
        self._answers: AnswerServiceAsyncStub = answer_grpc.AnswerServiceStub(channel)
        self._exports: ExportServiceAsyncStub = export_grpc.ExportServiceStub(channel)
        self._calls = BackendCalls(RESULTS, timeout_seconds=timeout_seconds)
        self._rescore_seconds = timeout_seconds * _RESCORE_PATIENCE
        self._measure_seconds = timeout_seconds * _MEASURE_PATIENCE

    async def get_summary(self, run_id: str) -> summary_pb2.RunSummary:
        request = results_service_pb2.GetSummaryRequest(run_id=run_id)
        return (await self._calls.ask(self._figures.GetSummary, request)).summary

    async def summary_so_far(self, run_id: str) -> summary_pb2.RunSummary:
        """Empty before the run is planned: it has no record then."""
        try:
            return await self.get_summary(run_id)
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return summary_pb2.RunSummary(run_id=run_id)
            raise

    async def outcomes_so_far(
        self, request: results_service_pb2.ListOutcomesRequest
    ) -> results_service_pb2.ListOutcomesResponse:
        """None before the run is planned."""
        try:
            return await self._calls.ask(self._figures.ListOutcomes, request)
        except RemoteError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                return results_service_pb2.ListOutcomesResponse()
            raise

    async def compare_runs(self, request: comparing_pb2.CompareRunsRequest) -> comparison_pb2.Comparison:
        return (await self._calls.ask(self._comparisons.CompareRuns, request)).comparison

    async def get_leaderboard(
        self, request: leaderboard_pb2.GetLeaderboardRequest
    ) -> leaderboard_pb2.GetLeaderboardResponse:
        return await self._calls.ask(self._standings.GetLeaderboard, request)

    async def get_history(
        self, request: leaderboard_pb2.GetHistoryRequest
    ) -> leaderboard_pb2.GetHistoryResponse:
        return await self._calls.ask(self._standings.GetHistory, request)

    async def rescore_task(self, request: rescore_pb2.RescoreTaskRequest) -> rescore_pb2.RescoreTaskResponse:
        return await self._calls.ask(self._rescoring.RescoreTask, request, self._rescore_seconds)

    async def list_side_by_side(
        self, request: answer_pb2.ListSideBySideRequest
    ) -> answer_pb2.ListSideBySideResponse:
        return await self._calls.ask(self._answers.ListSideBySide, request)

    async def mark_answers(self, request: answer_pb2.MarkAnswersRequest) -> answer_pb2.MarkAnswersResponse:
        return await self._calls.ask(self._answers.MarkAnswers, request)

    def export_golden(
        self, request: export_pb2.ExportGoldenAnswersRequest
    ) -> AsyncGenerator[export_pb2.ExportGoldenAnswersResponse]:
        return self._calls.pieces(self._exports.ExportGoldenAnswers, request)

    def export_run(
        self, request: export_pb2.ExportRunRequest
    ) -> AsyncGenerator[export_pb2.ExportRunResponse]:
        """What must be measured takes longer to begin; what was found of it before a timeout is kept."""
        is_measured = request.with_total or request.first_byte
        patience = self._measure_seconds if is_measured else None
        return self._calls.pieces(self._exports.ExportRun, request, patience)
