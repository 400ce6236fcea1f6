"""Joins the parts of exports."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.api_keys import Pepper
from services.common.postgres import PostgresSession
from services.results.answers.list_outcomes import ListOutcomes
from services.results.answers.postgres import PostgresAnswers, PostgresListedOutcomes, PostgresMarks
from services.results.export.export_chosen import ExportChosen
from services.results.export.export_golden_answers import ExportGoldenAnswers
from services.results.export.export_run import ExportRun
from services.results.export.grpc_api import FORMATS, GrpcExportApi
from services.results.export.postgres import (
    PostgresExportRows,
    PostgresResumePoints,
)
from services.results.summaries.ports import Stores
from services.results.summaries.show_summary import ShowSummary


def make_export_api(
    *,
    session: PostgresSession,
    stores: Stores,
    show_summary: ShowSummary,
    card_keys: Pepper,
    list_outcomes: ListOutcomes,
) -> GrpcExportApi:
    rows = PostgresExportRows(session=session)
    export_run = ExportRun(
        records=stores.records,
        rows=rows,
        chosen=ExportChosen(list_outcomes=list_outcomes, rows=rows),
        outcomes=PostgresListedOutcomes(session=session),
        resume_points=PostgresResumePoints(session=session),
        signing_key=Ed25519PrivateKey.from_private_bytes(card_keys.code("ed25519")),
        show_summary=show_summary,
        formats=FORMATS,
    )
    export_golden_answers = ExportGoldenAnswers(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresAnswers(session=session),
        marks=PostgresMarks(session=session),
    )
    return GrpcExportApi(export_run=export_run, export_golden_answers=export_golden_answers)
