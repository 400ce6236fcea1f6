"""Runs as files over gRPC: convert, call, pass on chunk by chunk."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass

import grpc

from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import export_service_pb2_grpc as export_grpc
from proctor.values.outcome import OutcomeStatus
from services.common.checked_fields import checked_choice, checked_id, checked_text, invalid_field
from services.common.grpc.server import RpcContext
from services.results.answers.grpc_api import filter_from_proto, sort_from_proto
from services.results.answers.list_outcomes import OutcomeQuery
from services.results.export.cards.json_result_card import CARD
from services.results.export.cards.model_card import MODEL_CARD
from services.results.export.export_golden_answers import ExportGoldenAnswers, GoldenForm
from services.results.export.export_run import ExportRequest, ExportRun
from services.results.export.exported_run import MissingAnswer
from services.results.export.html_report import HTML
from services.results.export.json_every_eval import EVERY_EVAL, EVERY_EVAL_SAMPLES
from services.results.export.json_formats import BATCH_ERRORS, BATCH_OUTPUT, JSON, JSONL
from services.results.export.lm_eval_samples import LM_EVAL
from services.results.export.ports import ExportFormat
from services.results.export.table_formats import CSV, PARQUET

SERVICE_NAME = export_pb2.DESCRIPTOR.services_by_name["ExportService"].full_name

FORMATS: dict[int, ExportFormat] = {
    export_pb2.EXPORT_FORMAT_CSV: CSV,
    export_pb2.EXPORT_FORMAT_JSON: JSON,
    export_pb2.EXPORT_FORMAT_JSONL: JSONL,
    export_pb2.EXPORT_FORMAT_PARQUET: PARQUET,
    export_pb2.EXPORT_FORMAT_HTML: HTML,
    export_pb2.EXPORT_FORMAT_LM_EVAL: LM_EVAL,
    export_pb2.EXPORT_FORMAT_BATCH_OUTPUT: BATCH_OUTPUT,
    export_pb2.EXPORT_FORMAT_BATCH_ERRORS: BATCH_ERRORS,
    export_pb2.EXPORT_FORMAT_EVERY_EVAL: EVERY_EVAL,
    export_pb2.EXPORT_FORMAT_EVERY_EVAL_SAMPLES: EVERY_EVAL_SAMPLES,
    export_pb2.EXPORT_FORMAT_MODEL_CARD: MODEL_CARD,
    export_pb2.EXPORT_FORMAT_CARD: CARD,
}
GOLDEN_FORMS: dict[int, GoldenForm] = {
    export_pb2.GOLDEN_FORM_TRAINING: GoldenForm.TRAINING,
    export_pb2.GOLDEN_FORM_TEST: GoldenForm.TEST,
}
# A chunk with one long row may be larger than gRPC takes.
MESSAGE_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class GrpcExportApi(export_grpc.ExportServiceServicer):
    export_run: ExportRun
    export_golden_answers: ExportGoldenAnswers

    def register(self, server: grpc.aio.Server) -> None:
        """Adds the service to a server."""
        export_grpc.add_ExportServiceServicer_to_server(self, server)

    async def ExportRun(
        self, request: export_pb2.ExportRunRequest, context: RpcContext
    ) -> AsyncIterator[export_pb2.ExportRunResponse]:
        file = await self.export_run.export(_order(request))
        yield export_pb2.ExportRunResponse(
            file_name=file.name,
            media_type=file.media_type,
            total_bytes=file.total_bytes,
            content_tag=file.tag,
        )
        async with aclosing(_messages(file.chunks)) as messages:
            async for content in messages:
                yield export_pb2.ExportRunResponse(content=content)

    async def ExportGoldenAnswers(
        self, request: export_pb2.ExportGoldenAnswersRequest, context: RpcContext
    ) -> AsyncIterator[export_pb2.ExportGoldenAnswersResponse]:
        form = GOLDEN_FORMS.get(request.form)
        if form is None:
            raise invalid_field("form", "must be GOLDEN_FORM_TRAINING or GOLDEN_FORM_TEST")
        run_ids = [checked_id("run_ids", run_id) for run_id in request.run_ids]
        file = await self.export_golden_answers.export(run_ids, form)
        yield export_pb2.ExportGoldenAnswersResponse(file_name=file.name)
        async with aclosing(_messages(file.chunks)) as messages:
            async for content in messages:
                yield export_pb2.ExportGoldenAnswersResponse(content=content)


async def _messages(chunks: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The same bytes, in parts that fit into messages."""
    async with aclosing(chunks):
        async for chunk in chunks:
            for start in range(0, len(chunk), MESSAGE_BYTES):
                yield chunk[start : start + MESSAGE_BYTES]


def _chosen(request: export_pb2.ExportRunRequest, run_id: str) -> OutcomeQuery | None:
    """What the file is of, where that is not the whole run or task in its own order."""
    if not (request.status or request.sort or request.HasField("filter")):
        return None
    return OutcomeQuery(
        run_id,
        task=checked_text("task", request.task),
        status=checked_choice("status", OutcomeStatus, request.status) if request.status else None,
        filter=filter_from_proto(request.filter),
        sort=sort_from_proto(request),
    )


def _order(request: export_pb2.ExportRunRequest) -> ExportRequest:
    default, run_id = MissingAnswer(), checked_id("run_id", request.run_id)
    return ExportRequest(
        run_id=run_id,
        format_number=request.format,
        task=checked_text("task", request.task),
        first_byte=request.first_byte,
        includes_total=request.includes_total,
        missing=MissingAnswer(
            checked_text("missing_code", request.missing_code) or default.code,
            checked_text("missing_message", request.missing_message) or default.message,
        ),
        is_csv_safe=request.is_csv_safe,
        chosen=_chosen(request, run_id),
    )
