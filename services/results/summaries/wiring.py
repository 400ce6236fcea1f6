"""Joins the parts that open, close and delete the record of a run."""

from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.common.sandboxes.task_code.ports import CodeRunner
from services.results.decisions.decide_runs import DecideRuns
from services.results.decisions.postgres import PostgresAnsweredSamples
from services.results.leases.ports import LeaseStore
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.postgres import PostgresReuse
from services.results.outcomes.record_logged import RecordLogged
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.runs.open_run import OpenRun
from services.results.samples.postgres import PostgresSampleMessages
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.settings import ResultsSettings
from services.results.summaries.close_run import CloseRun
from services.results.summaries.grpc_api import GrpcRecordApi
from services.results.summaries.ports import ArchiveSteps, Stores
from services.results.summaries.show_summary import PartialSummaries, ShowSummary
from services.results.summaries.summarize_run import SummarizeRun


def make_close_run(
    settings: ResultsSettings, stores: Stores, leases: LeaseStore, clock: Clock, code: CodeRunner | None
) -> CloseRun:
    return CloseRun(
        records=stores.records,
        summaries=stores.summaries,
        leases=leases,
        summarize_run=SummarizeRun(stores=stores, clock=clock, code_runner=code),
        limit_seconds=settings.close_timeout_seconds,
    )


def make_record_api(
    session: PostgresSession,
    stores: Stores,
    close_run: CloseRun,
    delete_run: DeleteRunRecord,
    archives: ArchiveSteps,
) -> GrpcRecordApi:
    """The API that the scheduler calls."""
    records, outcomes = stores.records, stores.outcomes
    return GrpcRecordApi(
        store_sample_set=StoreSampleSet(sample_sets=stores.sample_sets),
        read_samples=ReadSamples(samples=PostgresSampleMessages(session=session)),
        open_run=OpenRun(records=records),
        records=records,
        list_missing=ListMissing(records=records, outcomes=outcomes),
        close_run=close_run,
        decide_runs=DecideRuns(records=records, answers=PostgresAnsweredSamples(session=session)),
        reuse_answers=ReuseAnswers(
            records=records, outcomes=outcomes, answers=PostgresReuse(session=session)
        ),
        record_logged=RecordLogged(records=records, outcomes=outcomes),
        delete_run=delete_run,
        archives=archives,
    )


def make_show_summary(stores: Stores, clock: Clock, code: CodeRunner | None) -> ShowSummary:
    compute = SummarizeRun(stores=stores, clock=clock, code_runner=code).summarize
    return ShowSummary(
        records=stores.records,
        summaries=stores.summaries,
        partials=PartialSummaries(compute=compute, clock=clock),
    )
