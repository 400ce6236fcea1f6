"""Fakes of results: its summaries, outcomes, comparisons, ranks, scores and exports, as a test sets them."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import annotation_service_pb2_grpc as annotation_grpc
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import (
    comparison_pb2,
    comparison_service_pb2,
    leaderboard_service_pb2,
    outcome_pb2,
    summary_pb2,
)
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.v1 import leaderboard_service_pb2_grpc as leaderboard_grpc
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import rescore_service_pb2_grpc as rescore_grpc
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import results_service_pb2_grpc as results_grpc
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.refusals import refused


@dataclass
class FakeComparisons(comparison_grpc.ComparisonServiceServicer):
    """Flips come two to a page."""

    comparison: comparison_pb2.Comparison = field(default_factory=comparison_pb2.Comparison)
    flips: list[comparison_pb2.Flip] = field(default_factory=list)
    compared: list[comparison_service_pb2.CompareRunsRequest] = field(default_factory=list)
    listed: list[comparison_service_pb2.ListFlipsRequest] = field(default_factory=list)
    gate: comparison_pb2.Gate = field(default_factory=comparison_pb2.Gate)
    gated: list[comparison_service_pb2.GateRunRequest] = field(default_factory=list)
    plan: comparison_pb2.SizePlan = field(default_factory=comparison_pb2.SizePlan)
    planned: list[comparison_service_pb2.PlanSizeRequest] = field(default_factory=list)
    refusal: RemoteError | None = None

    async def CompareRuns(
        self, request: comparison_service_pb2.CompareRunsRequest, context: Any
    ) -> comparison_service_pb2.CompareRunsResponse:
        self.compared.append(request)
        if self.refusal and not request.is_forced:
            raise self.refusal
        return comparison_service_pb2.CompareRunsResponse(comparison=self.comparison)

    async def GateRun(
        self, request: comparison_service_pb2.GateRunRequest, context: Any
    ) -> comparison_service_pb2.GateRunResponse:
        self.gated.append(request)
        if self.refusal:
            raise self.refusal
        return comparison_service_pb2.GateRunResponse(gate=self.gate)

    async def PlanSize(
        self, request: comparison_service_pb2.PlanSizeRequest, context: Any
    ) -> comparison_service_pb2.PlanSizeResponse:
        self.planned.append(request)
        return comparison_service_pb2.PlanSizeResponse(plan=self.plan)

    async def ListFlips(
        self, request: comparison_service_pb2.ListFlipsRequest, context: Any
    ) -> comparison_service_pb2.ListFlipsResponse:
        self.listed.append(request)
        start = int(request.page_token or 0)
        end = start + 2
        token = str(end) if end < len(self.flips) else ""
        return comparison_service_pb2.ListFlipsResponse(
            flips=self.flips[start:end], next_page_token=token, total=len(self.flips)
        )


@dataclass
class FakeLeaderboard(leaderboard_grpc.LeaderboardServiceServicer):
    """Has one leaderboard and one page of history."""

    leaderboard: leaderboard_service_pb2.GetLeaderboardResponse = field(
        default_factory=leaderboard_service_pb2.GetLeaderboardResponse
    )
    page: leaderboard_service_pb2.ListHistoryResponse = field(
        default_factory=leaderboard_service_pb2.ListHistoryResponse
    )
    ratings: leaderboard_service_pb2.GetRatingsResponse = field(
        default_factory=leaderboard_service_pb2.GetRatingsResponse
    )
    ratings_asked: list[leaderboard_service_pb2.GetRatingsRequest] = field(default_factory=list)
    leaderboards_asked: list[leaderboard_service_pb2.GetLeaderboardRequest] = field(default_factory=list)
    pages_asked: list[leaderboard_service_pb2.ListHistoryRequest] = field(default_factory=list)
    closed_asked: list[leaderboard_service_pb2.ListClosedRunsRequest] = field(default_factory=list)
    refusal: RemoteError | None = None
    refusal_of_pages: RemoteError | None = None

    async def GetRatings(
        self, request: leaderboard_service_pb2.GetRatingsRequest, context: Any
    ) -> leaderboard_service_pb2.GetRatingsResponse:
        self.ratings_asked.append(request)
        return self.ratings

    async def GetLeaderboard(
        self, request: leaderboard_service_pb2.GetLeaderboardRequest, context: Any
    ) -> leaderboard_service_pb2.GetLeaderboardResponse:
        self.leaderboards_asked.append(request)
        if self.refusal:
            raise self.refusal
        return self.leaderboard

    async def ListHistory(
        self, request: leaderboard_service_pb2.ListHistoryRequest, context: Any
    ) -> leaderboard_service_pb2.ListHistoryResponse:
        self.pages_asked.append(request)
        if self.refusal_of_pages:
            raise self.refusal_of_pages
        return self.page

    async def ListClosedRuns(
        self, request: leaderboard_service_pb2.ListClosedRunsRequest, context: Any
    ) -> leaderboard_service_pb2.ListClosedRunsResponse:
        self.closed_asked.append(request)
        if self.refusal:
            raise self.refusal
        found = [entry for entry in self.page.entries if entry.run_id in request.run_ids]
        return leaderboard_service_pb2.ListClosedRunsResponse(entries=found)


@dataclass
class FakeRescoring(rescore_grpc.RescoreServiceServicer):
    """Has one answer, or a refusal."""

    response: rescore_pb2.RescoreTaskResponse = field(default_factory=rescore_pb2.RescoreTaskResponse)
    asked: list[rescore_pb2.RescoreTaskRequest] = field(default_factory=list)
    refusal: RemoteError | None = None

    async def RescoreTask(
        self, request: rescore_pb2.RescoreTaskRequest, context: Any
    ) -> rescore_pb2.RescoreTaskResponse:
        self.asked.append(request)
        if self.refusal:
            raise self.refusal
        return self.response


@dataclass
class FakeAnswers(answer_grpc.AnswerServiceServicer):
    """Rows come two to a page; a mark makes as many answers golden, or wrong, as it names."""

    rows: list[answer_pb2.SideBySideRow] = field(default_factory=list)
    listed: list[answer_pb2.ListSideBySideRequest] = field(default_factory=list)
    marked: list[answer_pb2.MarkAnswersRequest] = field(default_factory=list)
    changes: list[answer_pb2.MarkChange] = field(default_factory=list)
    calibrated: answer_pb2.CalibratedFigure = field(default_factory=answer_pb2.CalibratedFigure)
    refusal: RemoteError | None = None

    async def ListSideBySide(
        self, request: answer_pb2.ListSideBySideRequest, context: Any
    ) -> answer_pb2.ListSideBySideResponse:
        self.listed.append(request)
        if self.refusal:
            raise self.refusal
        start = int(request.page_token or 0)
        end = start + 2
        token = str(end) if end < len(self.rows) else ""
        return answer_pb2.ListSideBySideResponse(rows=self.rows[start:end], next_page_token=token)

    async def MarkAnswers(
        self, request: answer_pb2.MarkAnswersRequest, context: Any
    ) -> answer_pb2.MarkAnswersResponse:
        self.marked.append(request)
        if self.refusal:
            raise self.refusal
        count = len(request.answers)
        if request.is_marked_wrong:
            return answer_pb2.MarkAnswersResponse(wrong_count=count)
        return answer_pb2.MarkAnswersResponse(golden_count=count)

    async def ListMarkChanges(
        self, request: answer_pb2.ListMarkChangesRequest, context: Any
    ) -> answer_pb2.ListMarkChangesResponse:
        start = int(request.page_token or 0)
        end = start + request.page_size
        token = str(end) if end < len(self.changes) else ""
        return answer_pb2.ListMarkChangesResponse(changes=self.changes[start:end], next_page_token=token)

    async def CalibrateJudge(
        self, request: answer_pb2.CalibrateJudgeRequest, context: Any
    ) -> answer_pb2.CalibrateJudgeResponse:
        return answer_pb2.CalibrateJudgeResponse(figure=self.calibrated)


@dataclass
class FakeAnnotations(annotation_grpc.AnnotationServiceServicer):
    """A queue of answers to one run, and what was said of them; two to a page."""

    run_id: str = ""
    name: str = "correctness"
    labels: tuple[str, ...] = ("yes", "no")
    queue: list[int] = field(default_factory=list)
    asked: list[annotation_pb2.FindUnannotatedRequest] = field(default_factory=list)
    said: list[annotation_pb2.AnnotateAnswerRequest] = field(default_factory=list)
    annotations: list[annotation_pb2.Annotation] = field(default_factory=list)
    agreement: annotation_pb2.GetAgreementResponse = field(
        default_factory=annotation_pb2.GetAgreementResponse
    )

    def _question(self) -> annotation_pb2.AnnotationQuestion:
        labels = [annotation_pb2.AnnotationLabel(label=one, score=0.5) for one in self.labels]
        return annotation_pb2.AnnotationQuestion(run_id=self.run_id, name=self.name, labels=labels)

    async def FindUnannotated(
        self, request: annotation_pb2.FindUnannotatedRequest, context: Any
    ) -> annotation_pb2.FindUnannotatedResponse:
        self.asked.append(request)
        left = self.queue[len(self.said) :]
        sample = left[0] if left else None
        return annotation_pb2.FindUnannotatedResponse(question=self._question(), sample=sample)

    async def AnnotateAnswer(
        self, request: annotation_pb2.AnnotateAnswerRequest, context: Any
    ) -> annotation_pb2.AnnotateAnswerResponse:
        self.said.append(request)
        return annotation_pb2.AnnotateAnswerResponse()

    async def ListAnnotations(
        self, request: annotation_pb2.ListAnnotationsRequest, context: Any
    ) -> annotation_pb2.ListAnnotationsResponse:
        start = int(request.page_token or 0)
        token = str(start + 2) if start + 2 < len(self.annotations) else ""
        shown = self.annotations[start : start + 2]
        return annotation_pb2.ListAnnotationsResponse(annotations=shown, next_page_token=token)

    async def GetAgreement(
        self, request: annotation_pb2.GetAgreementRequest, context: Any
    ) -> annotation_pb2.GetAgreementResponse:
        self.agreement.question.CopyFrom(self._question())
        return self.agreement


@dataclass
class FakeExports(export_grpc.ExportServiceServicer):
    """Sends `pieces`, or `refusal` before the piece of that number; counts what was taken from it.

    With a `content_tag` they are the file of a run that is closed, which can be begun at any byte.
    """

    pieces: list[bytes] = field(default_factory=list)
    file_name: str = "run.csv"
    media_type: str = "text/csv"
    refusal: RemoteError | None = None
    refuse_at: int = 0
    is_endless: bool = False
    content_tag: str = ""
    asked: list[export_pb2.ExportRunRequest] = field(default_factory=list)
    golden_asked: list[export_pb2.ExportGoldenAnswersRequest] = field(default_factory=list)
    taken: int = 0
    streams_open: int = 0

    async def ExportRun(
        self, request: export_pb2.ExportRunRequest, context: Any
    ) -> AsyncIterator[export_pb2.ExportRunResponse]:
        self.asked.append(request)
        self.streams_open += 1
        try:
            for number, content in enumerate(self._pieces_after(request.first_byte)):
                self._refuse(number)
                piece = export_pb2.ExportRunResponse(content=content)
                if number == 0:
                    self._describe(piece, request)
                yield piece
                self.taken += 1
            self._refuse(len(self.pieces))
            if self.is_endless:
                await asyncio.Event().wait()
        finally:
            self.streams_open -= 1

    async def ExportGoldenAnswers(
        self, request: export_pb2.ExportGoldenAnswersRequest, context: Any
    ) -> AsyncIterator[export_pb2.ExportGoldenAnswersResponse]:
        self.golden_asked.append(request)
        self._refuse(self.refuse_at)
        for content in self.pieces:
            yield export_pb2.ExportGoldenAnswersResponse(content=content, file_name=self.file_name)

    def _pieces_after(self, first_byte: int) -> list[bytes]:
        return [b"".join(self.pieces)[first_byte:]] if first_byte else self.pieces

    def _describe(self, piece: export_pb2.ExportRunResponse, request: export_pb2.ExportRunRequest) -> None:
        piece.file_name, piece.media_type, piece.content_tag = (
            self.file_name,
            self.media_type,
            self.content_tag,
        )
        if self.content_tag and (request.includes_total or request.first_byte):
            piece.total_bytes = sum(map(len, self.pieces))

    def _refuse(self, number: int) -> None:
        if self.refusal and number == self.refuse_at:
            raise self.refusal


@dataclass
class FakeResults(results_grpc.ResultsServiceServicer):
    """Has the summaries and outcomes that it was given; without outcomes one page leads to the next.

    Summaries are answered once `summaries_come` is set, where there is one.
    """

    summaries: dict[str, summary_pb2.RunSummary] = field(default_factory=dict)
    summaries_come: asyncio.Event | None = None
    outcomes: dict[str, list[outcome_pb2.RecordedOutcome]] = field(default_factory=dict)
    outcomes_asked: list[results_pb2.ListOutcomesRequest] = field(default_factory=list)
    outcomes_refusal: RemoteError | None = None
    comparisons: FakeComparisons = field(default_factory=FakeComparisons)
    entries: FakeLeaderboard = field(default_factory=FakeLeaderboard)
    rescoring: FakeRescoring = field(default_factory=FakeRescoring)
    answers: FakeAnswers = field(default_factory=FakeAnswers)
    annotations: FakeAnnotations = field(default_factory=FakeAnnotations)
    exports: FakeExports = field(default_factory=FakeExports)
    reclosed: list[str] = field(default_factory=list)

    async def RecloseRun(
        self, request: results_pb2.RecloseRunRequest, context: Any
    ) -> results_pb2.RecloseRunResponse:
        self.reclosed.append(request.run_id)
        return results_pb2.RecloseRunResponse(summary=self.summaries.get(request.run_id), progress=0.25)

    async def RecordContamination(
        self, request: results_pb2.RecordContaminationRequest, context: Any
    ) -> results_pb2.RecordContaminationResponse:
        summary = self.summaries[request.run_id]
        figure = summary.contamination.add()
        figure.CopyFrom(request.figure)
        figure.user = request.user
        return results_pb2.RecordContaminationResponse(summary=summary)

    async def GetSummary(
        self, request: results_pb2.GetSummaryRequest, context: Any
    ) -> results_pb2.GetSummaryResponse:
        if self.summaries_come:
            await self.summaries_come.wait()
        if request.run_id not in self.summaries:
            raise refused(
                ErrorKind.NOT_FOUND,
                "RUN_NOT_FOUND",
                f"Run {request.run_id} not found.",
                run_id=request.run_id,
            )
        return results_pb2.GetSummaryResponse(summary=self.summaries[request.run_id])

    async def ListOutcomes(
        self, request: results_pb2.ListOutcomesRequest, context: Any
    ) -> results_pb2.ListOutcomesResponse:
        self.outcomes_asked.append(request)
        if self.outcomes_refusal:
            raise self.outcomes_refusal
        if request.run_id not in self.outcomes:
            behind = "" if request.page_token.startswith("after") else f"after {request.page_token}"
            return results_pb2.ListOutcomesResponse(next_page_token=behind)
        beginning = (request.first_sample, request.first_rollout)
        recorded = [
            one
            for one in self.outcomes[request.run_id]
            if (one.outcome.sample, one.outcome.rollout) >= beginning
        ]
        if request.is_brief:
            recorded = [_briefly(one) for one in recorded]
        first = int(request.page_token or 0)
        last = first + (request.page_size or 100)
        more = str(last) if last < len(recorded) else ""
        judges = {one.judge.run_id: one.judge for each in recorded for one in each.verdicts}
        return results_pb2.ListOutcomesResponse(
            outcomes=recorded[first:last], next_page_token=more, judges=judges.values()
        )


def _briefly(one: outcome_pb2.RecordedOutcome) -> outcome_pb2.RecordedOutcome:
    brief = outcome_pb2.RecordedOutcome()
    brief.CopyFrom(one)
    for name in ("prompt", "choices", "target"):
        brief.ClearField(name)
    if brief.outcome.HasField("answer"):
        brief.outcome.answer.text = brief.outcome.answer.body_json = ""
    return brief
