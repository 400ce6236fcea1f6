"""Joins the parts of annotations."""

from services.common.postgres import PostgresSession
from services.results.annotations.annotate_answers import AnnotateAnswers
from services.results.annotations.grpc_api import GrpcAnnotationApi
from services.results.annotations.postgres import PostgresAnnotations
from services.results.annotations.show_panel import ShowPanel
from services.results.runs.ports import RunRecordStore


def make_annotation_api(session: PostgresSession, records: RunRecordStore) -> GrpcAnnotationApi:
    annotations = PostgresAnnotations(session=session)
    return GrpcAnnotationApi(
        annotate_answers=AnnotateAnswers(records=records, annotations=annotations),
        show_panel=ShowPanel(records=records, annotations=annotations),
    )
