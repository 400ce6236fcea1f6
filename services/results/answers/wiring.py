"""Joins the parts that list and mark answers."""

from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.results.annotations.postgres import PostgresAnnotations
from services.results.answers.calibrate_judge import CalibrateJudge
from services.results.answers.grpc_api import GrpcAnswerApi
from services.results.answers.list_outcomes import ListOutcomes
from services.results.answers.list_side_by_side import ListSideBySide
from services.results.answers.mark_answers import ListMarkChanges, MarkAnswers
from services.results.answers.postgres import PostgresAnswers, PostgresMarks, PostgresSameSamples
from services.results.answers.show_verdicts import ShowVerdicts
from services.results.answers.sorted_keys_cache import SortedKeysCache
from services.results.summaries.ports import Stores


def make_list_outcomes(session: PostgresSession, stores: Stores, clock: Clock) -> ListOutcomes:
    answers = PostgresAnswers(session=session)
    return ListOutcomes(
        records=stores.records,
        sample_sets=stores.sample_sets,
        outcomes=stores.outcomes,
        answers=answers,
        verdicts=ShowVerdicts(
            records=stores.records, annotations=PostgresAnnotations(session=session), answers=answers
        ),
        cache=SortedKeysCache(),
        clock=clock,
    )


def make_answer_api(session: PostgresSession, stores: Stores, clock: Clock) -> GrpcAnswerApi:
    list_side_by_side = ListSideBySide(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresAnswers(session=session),
        same_samples=PostgresSameSamples(session=session),
        clock=clock,
    )
    marks = PostgresMarks(session=session)
    return GrpcAnswerApi(
        list_side_by_side=list_side_by_side,
        mark_answers=MarkAnswers(records=stores.records, marks=marks),
        list_mark_changes=ListMarkChanges(records=stores.records, marks=marks),
        calibrate_judge=CalibrateJudge(
            records=stores.records, marks=marks, annotations=PostgresAnnotations(session=session)
        ),
    )
