"""Annotations over gRPC: convert, call, convert."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import annotation_service_pb2_grpc as annotation_grpc
from proctor.wire.enums import number_of
from services.common.checked_fields import checked_id, checked_text
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import checked_page_size
from services.results.annotations.annotate_answers import AnnotateAnswers, Annotated, Said
from services.results.annotations.annotation import Annotation
from services.results.annotations.question import Question
from services.results.annotations.show_panel import PanelJudge, ShownPanel, ShowPanel
from services.results.statistics.judged.panel import Lean

SERVICE_NAME = annotation_pb2.DESCRIPTOR.services_by_name["AnnotationService"].full_name


@dataclass(frozen=True, kw_only=True)
class GrpcAnnotationApi(annotation_grpc.AnnotationServiceServicer):
    annotate_answers: AnnotateAnswers
    show_panel: ShowPanel

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        annotation_grpc.add_AnnotationServiceServicer_to_server(self, server)

    async def FindUnannotated(
        self, request: annotation_pb2.FindUnannotatedRequest, context: RpcContext
    ) -> annotation_pb2.FindUnannotatedResponse:
        queued = await self.annotate_answers.next(
            checked_id("run_id", request.run_id),
            checked_text("user", request.user),
            request.raters,
            is_disagreement_first=request.is_disagreement_first,
        )
        sample, rollout = queued.key or (None, 0)
        return annotation_pb2.FindUnannotatedResponse(
            question=question_to_proto(queued.question), sample=sample, rollout=rollout
        )

    async def AnnotateAnswer(
        self, request: annotation_pb2.AnnotateAnswerRequest, context: RpcContext
    ) -> annotation_pb2.AnnotateAnswerResponse:
        said = Said(
            (request.sample, request.rollout),
            checked_text("label", request.label),
            checked_text("comment", request.comment),
            checked_text("user", request.user),
        )
        caller = caller_of(context.invocation_metadata())
        await self.annotate_answers.annotate(checked_id("run_id", request.run_id), said, caller)
        return annotation_pb2.AnnotateAnswerResponse()

    async def ListAnnotations(
        self, request: annotation_pb2.ListAnnotationsRequest, context: RpcContext
    ) -> annotation_pb2.ListAnnotationsResponse:
        run_id, user = checked_id("run_id", request.run_id), checked_text("user", request.user)
        size = checked_page_size(request.page_size)
        page = await self.annotate_answers.page(run_id, user, size, request.page_token)
        found = [annotation_to_proto(one) for one in page.annotations]
        return annotation_pb2.ListAnnotationsResponse(annotations=found, next_page_token=page.next_page_token)

    async def GetAgreement(
        self, request: annotation_pb2.GetAgreementRequest, context: RpcContext
    ) -> annotation_pb2.GetAgreementResponse:
        run_id, user = checked_id("run_id", request.run_id), checked_text("user", request.user)
        return agreement_to_proto(await self.annotate_answers.agreement(run_id, user))

    async def GetPanel(
        self, request: annotation_pb2.GetPanelRequest, context: RpcContext
    ) -> annotation_pb2.GetPanelResponse:
        return panel_to_proto(await self.show_panel.show(checked_id("run_id", request.run_id)))


def question_to_proto(question: Question) -> annotation_pb2.AnnotationQuestion:
    labels = [
        annotation_pb2.AnnotationLabel(label=one, score=score) for one, score in question.labels.items()
    ]
    return annotation_pb2.AnnotationQuestion(run_id=question.run_id, name=question.name, labels=labels)


def annotation_to_proto(one: Annotation) -> annotation_pb2.Annotation:
    sample, rollout = one.key
    message = annotation_pb2.Annotation(
        sample=sample, rollout=rollout, user=one.user, label=one.label, score=one.score, comment=one.comment
    )
    message.annotated_at.FromDatetime(one.annotated_at)
    return message


def agreement_to_proto(found: Annotated) -> annotation_pb2.GetAgreementResponse:
    counts, agreement = found.counts, found.raters.agreement
    return annotation_pb2.GetAgreementResponse(
        question=question_to_proto(found.question),
        answers=counts.answers,
        annotated=counts.annotated,
        annotated_twice=counts.annotated_twice,
        own=counts.own,
        drawn=counts.drawn,
        raters=found.raters.raters,
        measure=number_of(found.raters.measure),
        units=agreement.units,
        value=agreement.value,
        ci_low=agreement.ci_low,
        ci_high=agreement.ci_high,
    )


def panel_to_proto(panel: ShownPanel) -> annotation_pb2.GetPanelResponse:
    figure = panel.figure
    return annotation_pb2.GetPanelResponse(
        question=question_to_proto(panel.question),
        answers=figure.answers,
        mean=figure.mean,
        ci_low=figure.ci_low,
        ci_high=figure.ci_high,
        spread=figure.spread,
        alpha=figure.agreement.value,
        judges=[_judge_to_proto(judge) for judge in panel.judges],
    )


def _judge_to_proto(judge: PanelJudge) -> annotation_pb2.PanelJudge:
    return annotation_pb2.PanelJudge(
        run_id=judge.run_id,
        model=judge.model,
        is_against_people=judge.has_people,
        length=_lean_to_proto(judge.length),
        own_family=_lean_to_proto(judge.own_family) if judge.own_family else None,
    )


def _lean_to_proto(lean: Lean) -> annotation_pb2.Lean:
    return annotation_pb2.Lean(
        answers=lean.answers, value=lean.value, ci_low=lean.ci_low, ci_high=lean.ci_high
    )
