"""Summaries and recorded outcomes over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import outcome_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import results_service_pb2_grpc as results_grpc
from proctor.values.outcome import OutcomeStatus
from proctor.wire.enums import number_of
from services.common.checked_fields import checked_choice, checked_id, checked_text
from services.common.clock import Clock
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.results.answers.grpc_api import filter_from_proto, sort_from_proto
from services.results.answers.list_outcomes import ListOutcomes, OutcomeQuery
from services.results.answers.show_verdicts import AnswerJudge, AnswerVerdict
from services.results.outcomes.proto import brief_to_proto, recorded_to_proto
from services.results.summaries.close_run import CloseRun
from services.results.summaries.proto import contamination_from_proto, summary_to_proto
from services.results.summaries.record_contamination import RecordContamination
from services.results.summaries.show_summary import ShowSummary

SERVICE_NAME = results_pb2.DESCRIPTOR.services_by_name["ResultsService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcResultsApi(results_grpc.ResultsServiceServicer):
    show_summary: ShowSummary
    list_outcomes: ListOutcomes
    close_run: CloseRun
    record_contamination: RecordContamination
    clock: Clock

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        results_grpc.add_ResultsServiceServicer_to_server(self, server)

    async def GetSummary(
        self, request: results_pb2.GetSummaryRequest, context: RpcContext
    ) -> results_pb2.GetSummaryResponse:
        summary = await self.show_summary.show(checked_id("run_id", request.run_id))
        return results_pb2.GetSummaryResponse(summary=summary_to_proto(summary))

    async def RecloseRun(
        self, request: results_pb2.RecloseRunRequest, context: RpcContext
    ) -> results_pb2.RecloseRunResponse:
        closing = await self.close_run.close_again(checked_id("run_id", request.run_id))
        summary = None if closing.summary is None else summary_to_proto(closing.summary)
        return results_pb2.RecloseRunResponse(summary=summary, progress=closing.share)

    async def RecordContamination(
        self, request: results_pb2.RecordContaminationRequest, context: RpcContext
    ) -> results_pb2.RecordContaminationResponse:
        user = checked_text("user", request.user)
        figure = contamination_from_proto(request.figure, user, self.clock.now())
        caller = caller_of(context.invocation_metadata())
        run_id = checked_id("run_id", request.run_id)
        summary = await self.record_contamination.record(run_id, figure, caller)
        return results_pb2.RecordContaminationResponse(summary=summary_to_proto(summary))

    async def ListOutcomes(
        self, request: results_pb2.ListOutcomesRequest, context: RpcContext
    ) -> results_pb2.ListOutcomesResponse:
        query = OutcomeQuery(
            checked_id("run_id", request.run_id),
            request.page_size,
            request.page_token,
            checked_text("task", request.task),
            checked_choice("status", OutcomeStatus, request.status) if request.status else None,
            filter_from_proto(request.filter),
            (request.first_sample, request.first_rollout),
            request.is_brief,
            sort_from_proto(request),
            request.includes_verdicts and not request.is_brief,
        )
        page = await self.list_outcomes.list_page(query)
        to_proto = brief_to_proto if query.is_brief else recorded_to_proto
        outcomes = [to_proto(outcome) for outcome in page.outcomes]
        for listed, message in zip(page.outcomes, outcomes, strict=True):
            if judged := page.verdicts.get(listed.scored.key[1:]):
                message.verdicts.extend(map(_verdict_to_proto, judged.verdicts))
                if judged.disagreement is not None:
                    message.disagreement = judged.disagreement
        return results_pb2.ListOutcomesResponse(
            outcomes=outcomes,
            next_page_token=page.next_page_token,
            searched_samples=page.searched_samples,
            judges=[_judge_to_proto(judge) for judge in page.judges],
        )


def _judge_to_proto(judge: AnswerJudge) -> outcome_pb2.AnswerJudge:
    return outcome_pb2.AnswerJudge(
        run_id=judge.run_id, model=judge.model, prompt=judge.prompt, is_of_pairs=judge.question is None
    )


def _verdict_to_proto(verdict: AnswerVerdict) -> outcome_pb2.AnswerVerdict:
    sample, rollout = verdict.key
    return outcome_pb2.AnswerVerdict(
        judge=_judge_to_proto(verdict.judge),
        sample=sample,
        rollout=rollout,
        status=number_of(verdict.status),
        verdict=verdict.verdict,
        score=verdict.score,
        reason=verdict.reason,
        agrees_with_people=verdict.agrees_with_people,
        place=verdict.place,
    )
