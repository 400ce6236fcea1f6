"""Answers side by side, and marks on them, over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import answer_service_pb2_grpc as answer_grpc
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.outcome import FailureClass
from proctor.wire.convert import Codec
from services.common.checked_fields import checked_choice, checked_id, checked_text, invalid_field
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import checked_page_size
from services.results.answers.calibrate_judge import CalibrateJudge
from services.results.answers.list_side_by_side import ListSideBySide, SideBySideQuery
from services.results.answers.mark_answers import ListMarkChanges, MarkAnswers, MarkRequest, NamedAnswer
from services.results.answers.marks import Mark, MarkChange
from services.results.answers.outcome_filter import OutcomeFilter, OutcomeSort, SortValue
from services.results.answers.side_by_side import ShownRow
from services.results.outcomes.outcome import ListedOutcome
from services.results.outcomes.proto import brief_to_proto
from services.results.samples.sample import target_as_text
from services.results.statistics.judged.prediction_powered import CalibratedFigure
from services.results.statistics.paired.difference_estimate import DifferenceEstimate

CALIBRATED = Codec(
    CalibratedFigure,
    answer_pb2.CalibratedFigure,
    unpaired={"degrees_of_freedom", "error_rate", "advice"},
)
SERVICE_NAME = answer_pb2.DESCRIPTOR.services_by_name["AnswerService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcAnswerApi(answer_grpc.AnswerServiceServicer):
    list_side_by_side: ListSideBySide
    mark_answers: MarkAnswers
    list_mark_changes: ListMarkChanges
    calibrate_judge: CalibrateJudge

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        answer_grpc.add_AnswerServiceServicer_to_server(self, server)

    async def ListSideBySide(
        self, request: answer_pb2.ListSideBySideRequest, context: RpcContext
    ) -> answer_pb2.ListSideBySideResponse:
        query = SideBySideQuery(
            [checked_id("run_ids", run_id) for run_id in request.run_ids],
            checked_text("task", request.task),
            request.only_differing,
            filter_from_proto(request.filter),
            request.page_size,
            request.page_token,
        )
        page = await self.list_side_by_side.list_page(query)
        rows = [row_to_proto(row) for row in page.rows]
        return answer_pb2.ListSideBySideResponse(rows=rows, next_page_token=page.next_page_token)

    async def MarkAnswers(
        self, request: answer_pb2.MarkAnswersRequest, context: RpcContext
    ) -> answer_pb2.MarkAnswersResponse:
        marking = MarkRequest(
            checked_id("run_id", request.run_id),
            [
                NamedAnswer(key.sample, key.rollout, checked_text("answers.row_id", key.row_id))
                for key in request.answers
            ],
            _mark(request),
            checked_text("user", request.user),
        )
        counts = await self.mark_answers.mark(marking, caller_of(context.invocation_metadata()))
        return answer_pb2.MarkAnswersResponse(golden_count=counts.golden, wrong_count=counts.wrong)

    async def ListMarkChanges(
        self, request: answer_pb2.ListMarkChangesRequest, context: RpcContext
    ) -> answer_pb2.ListMarkChangesResponse:
        run_id = checked_id("run_id", request.run_id)
        size = checked_page_size(request.page_size)
        page = await self.list_mark_changes.list_page(run_id, size, request.page_token)
        changes = [change_to_proto(change) for change in page.changes]
        return answer_pb2.ListMarkChangesResponse(changes=changes, next_page_token=page.next_page_token)

    async def CalibrateJudge(
        self, request: answer_pb2.CalibrateJudgeRequest, context: RpcContext
    ) -> answer_pb2.CalibrateJudgeResponse:
        run_id = checked_id("run_id", request.run_id)
        judge = await self.calibrate_judge.calibrate(run_id)
        figure = CALIBRATED.to_proto(judge.figure)
        figure.advice = judge.advice
        if judge.error_rate is not None:
            figure.error_rate = judge.error_rate
        response = answer_pb2.CalibrateJudgeResponse(figure=figure)
        if request.against_run_id:
            against = checked_id("against_run_id", request.against_run_id)
            found = await self.calibrate_judge.difference(run_id, against)
            response.difference.CopyFrom(_difference_to_proto(found))
        return response


def _difference_to_proto(found: DifferenceEstimate) -> answer_pb2.CalibratedDifference:
    return answer_pb2.CalibratedDifference(
        pairs=found.pairs,
        first_mean=found.first_mean,
        second_mean=found.second_mean,
        difference=found.difference,
        ci_low=found.ci_low,
        ci_high=found.ci_high,
        p_value=found.p_value,
        remark=found.remark,
    )


def _mark(request: answer_pb2.MarkAnswersRequest) -> Mark | None:
    """None removes the mark."""
    if request.is_golden and request.is_marked_wrong:
        raise invalid_field("is_golden and is_marked_wrong", "must not both be set: an answer has one mark")
    return Mark.GOLDEN if request.is_golden else Mark.WRONG if request.is_marked_wrong else None


def change_to_proto(change: MarkChange) -> answer_pb2.MarkChange:
    sample, rollout = change.key
    message = answer_pb2.MarkChange(
        sample=sample,
        rollout=rollout,
        is_golden=change.mark is Mark.GOLDEN,
        is_marked_wrong=change.mark is Mark.WRONG,
        user=change.user,
    )
    message.changed_at.FromDatetime(change.at)
    return message


def filter_from_proto(message: results_pb2.OutcomeFilter) -> OutcomeFilter:
    return OutcomeFilter(
        row_id=checked_text("filter.row_id", message.row_id),
        text=checked_text("filter.text", message.text),
        metric=checked_text("filter.metric", message.metric),
        min_score=message.min_score if message.HasField("min_score") else None,
        max_score=message.max_score if message.HasField("max_score") else None,
        min_characters=message.min_characters if message.HasField("min_characters") else None,
        max_characters=message.max_characters if message.HasField("max_characters") else None,
        is_golden=message.is_golden,
        failure_class=(
            checked_choice("filter.failure_class", FailureClass, message.failure_class)
            if message.failure_class
            else None
        ),
        is_marked_wrong=message.is_marked_wrong,
    )


def sort_from_proto(
    message: results_pb2.ListOutcomesRequest | export_pb2.ExportRunRequest,
) -> OutcomeSort | None:
    if not message.sort:
        return None
    return OutcomeSort(checked_choice("sort", SortValue, message.sort), message.is_descending)


def row_to_proto(row: ShownRow) -> answer_pb2.SideBySideRow:
    sample = row.sample
    return answer_pb2.SideBySideRow(
        digest=sample.digest,
        row_id=sample.row_id,
        doc_id=sample.doc_id,
        prompt=sample.prompt.as_text,
        target=target_as_text(sample.target, row.task.scoring.target_delimiter),
        answers=[_answer(listed) for listed in row.answers],
        is_differing=row.is_differing,
    )


def _answer(listed: ListedOutcome | None) -> answer_pb2.SideBySideAnswer:
    """An answer without the fields that the row has already."""
    if listed is None:
        return answer_pb2.SideBySideAnswer()
    return answer_pb2.SideBySideAnswer(outcome=brief_to_proto(listed))
