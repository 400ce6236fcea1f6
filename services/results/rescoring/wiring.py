"""Joins the parts that score stored answers again."""

from services.common.postgres import PostgresSession
from services.results.answers.postgres import PostgresListedOutcomes
from services.results.rescoring.grpc_api import GrpcRescoreApi
from services.results.rescoring.rescore_task import RescoreTask
from services.results.scoring.ports import AnswerScorer
from services.results.summaries.ports import Stores
from services.results.summaries.show_summary import ShowSummary


def make_rescore_api(
    session: PostgresSession, stores: Stores, show_summary: ShowSummary, scorer: AnswerScorer
) -> GrpcRescoreApi:
    return GrpcRescoreApi(
        rescore_task=RescoreTask(
            records=stores.records,
            sample_sets=stores.sample_sets,
            answers=PostgresListedOutcomes(session=session),
            show_summary=show_summary,
            scorer=scorer,
        )
    )
