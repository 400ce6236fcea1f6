"""Connects the topics of results, from the lowest to the highest, and gathers what each one runs."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from nats.aio.client import Client

from services.common.api_keys import Pepper
from services.common.clock import Clock, SystemClock
from services.common.grpc.server import Registration
from services.common.lifecycle import every
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import outcome_consumer
from services.common.postgres import PostgresSession
from services.common.process import usable_caller_key, usable_dispatch_proof_key
from services.common.processes.bounded_calls import BoundedCalls
from services.common.sandboxes.task_code.ports import CodeRunner
from services.common.structured_logs import get_logger
from services.results.annotations import grpc_api as grpc_annotation_api
from services.results.annotations.wiring import make_annotation_api
from services.results.answers import grpc_api as grpc_answer_api
from services.results.answers import grpc_results_api
from services.results.answers.grpc_results_api import GrpcResultsApi
from services.results.answers.postgres import PostgresListedOutcomes
from services.results.answers.wiring import make_answer_api, make_list_outcomes
from services.results.archives.wiring import make_archives
from services.results.comparison import grpc_api as grpc_comparison_api
from services.results.comparison.wiring import make_comparison_api, make_store_comparison
from services.results.export import grpc_api as grpc_export_api
from services.results.export.grpc_api import GrpcExportApi
from services.results.export.wiring import make_export_api
from services.results.leaderboard import grpc_api as grpc_leaderboard_api
from services.results.leaderboard.add_baselines import AddBaselines
from services.results.leaderboard.compare_peers import ComparePeers
from services.results.leaderboard.compare_pending import ComparePending
from services.results.leaderboard.postgres import (
    PostgresLeaderboard,
    add_closed_run,
)
from services.results.leaderboard.wiring import (
    make_add_baselines,
    make_compare_peers,
    make_compare_pending,
    make_leaderboard_api,
    make_leased_runs,
)
from services.results.leases.postgres import PostgresLeases
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.nats import MESSAGES_PER_PULL, NatsOutcomeConsumer, NatsProgressPublisher
from services.results.outcomes.postgres import PostgresOutcomes
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.rescoring import grpc_api as grpc_rescore_api
from services.results.rescoring.rescore_task import RescoreTask
from services.results.runs.delete_unused_sets import DeleteUnusedSets
from services.results.runs.postgres import PostgresRunRecords
from services.results.samples.kept_targets import KeptTargets
from services.results.samples.postgres import PostgresSampleSets
from services.results.scoring.code.score_by_code import ScoreByCode
from services.results.scoring.processes.scorer_pool import ScorerPool
from services.results.settings import ResultsSettings
from services.results.summaries import grpc_api as grpc_record_api
from services.results.summaries.close_run import CloseRun
from services.results.summaries.ports import Stores
from services.results.summaries.postgres import PostgresSummaries
from services.results.summaries.record_contamination import RecordContamination
from services.results.summaries.wiring import make_close_run, make_record_api, make_show_summary

# Unused sets are kept for hours (`KEEP_UNUSED`): minutes more do not matter.
SWEEP_SECONDS = 300.0
# A look is one query; users wait for nothing that it deletes.
DELETE_SECONDS = 5.0
# Both are often, since the pages of a run that just ended show them; a look is one query.
BASELINE_SECONDS = 2.0
COMPARE_SECONDS = 1.0
CONSUMING = "consume outcomes"

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """Sessions of Postgres, each with a pool of its own so that none waits for another, and NATS."""

    recording: PostgresSession
    work: PostgresSession
    reads: PostgresSession
    nats: Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Processes beside the service: they score texts, compute figures that may take long, and execute code.

    `code` None: the operator allows no code of tasks.
    """

    scorer: ScorerPool
    calls: BoundedCalls
    code: CodeRunner | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """`apis` are by the names of their services."""

    apis: Mapping[str, Registration]
    consumer: NatsOutcomeConsumer
    unused_sets: DeleteUnusedSets
    delete_run: DeleteRunRecord
    add_baselines: AddBaselines
    compare_peers: ComparePeers
    compare_pending: ComparePending
    close_run: CloseRun

    def loops(self) -> Mapping[str, Coroutine[None, None, None]]:
        return {
            CONSUMING: self.consumer.run(),
            "delete sample sets": every(SWEEP_SECONDS, self._delete_unused_sets, name="delete sample sets"),
            "delete outcomes": every(DELETE_SECONDS, self.delete_run.sweep, name="delete outcomes"),
            "add baselines": every(BASELINE_SECONDS, self.add_baselines.add, name="add baselines"),
            "compare peers": every(COMPARE_SECONDS, self.compare_peers.compare, name="compare peers"),
            "compare pending": every(COMPARE_SECONDS, self.compare_pending.compare, name="compare pending"),
        }

    async def _delete_unused_sets(self) -> None:
        deleted = await self.unused_sets.delete()
        if deleted:
            log.info("sample sets deleted", sets=deleted)


def _outcome_puller(nats: Client, ack_wait_seconds: float) -> Puller:
    spec = outcome_consumer(ack_wait_seconds)
    return Puller(jetstream=JetStream(connection=nats), spec=spec, batch=MESSAGES_PER_PULL)


def make_topics(settings: ResultsSettings, connections: Connections, processes: Processes) -> Topics:
    work, nats, clock = connections.work, connections.nats, SystemClock()
    kept_targets = KeptTargets()
    recording = _stores(connections.recording, clock, kept_targets)
    stores = _stores(work, clock, kept_targets)
    dispatch_proof_key = usable_dispatch_proof_key(settings.dispatch_proof_key)
    record_outcomes = RecordOutcomes(
        records=recording.records,
        sample_sets=recording.sample_sets,
        outcomes=recording.outcomes,
        progress=NatsProgressPublisher(connection=nats, dispatch_proof_key=dispatch_proof_key),
        scorer=processes.scorer,
        by_code=ScoreByCode(runner=processes.code),
    )
    consumer = NatsOutcomeConsumer(
        puller=_outcome_puller(nats, settings.ack_wait_seconds),
        record=record_outcomes.record,
        max_outcomes=settings.max_outcomes_per_write,
        linger_seconds=settings.linger_seconds,
        dispatch_proof_key=dispatch_proof_key,
    )
    store_comparison = make_store_comparison(work, stores, processes.calls)
    compare_pending = make_compare_pending(work, store_comparison, clock)
    leases = PostgresLeases(session=work, holder=str(uuid4()))
    leased_runs = make_leased_runs(work, leases)
    close_run = make_close_run(settings, stores, leases, clock, processes.code)
    archive_run = make_archives(work, stores.records, clock, settings.object_store, [connections.reads])
    delete_run = DeleteRunRecord(records=stores.records, outcomes=stores.outcomes, archives=archive_run)
    record_api = make_record_api(work, stores, close_run, delete_run, archive_run)
    apis = {
        grpc_record_api.SERVICE_NAME: record_api.register,
        **_user_apis(connections.reads, processes, compare_pending, close_run, clock),
        grpc_export_api.SERVICE_NAME: _export_api(settings, connections.reads, processes, clock).register,
    }
    return Topics(
        apis=apis,
        consumer=consumer,
        unused_sets=DeleteUnusedSets(
            records=stores.records,
            sample_sets=stores.sample_sets,
            keep_staged=timedelta(seconds=settings.staged_retention_seconds),
        ),
        delete_run=delete_run,
        add_baselines=make_add_baselines(
            work, stores, leased_runs, calls=processes.calls, scorer=processes.scorer
        ),
        compare_peers=make_compare_peers(work, stores, leased_runs, store_comparison),
        compare_pending=compare_pending,
        close_run=close_run,
    )


def _stores(session: PostgresSession, clock: Clock, kept_targets: KeptTargets | None = None) -> Stores:
    return Stores(
        records=PostgresRunRecords(session=session),
        sample_sets=PostgresSampleSets(session=session, kept_targets=kept_targets),
        outcomes=PostgresOutcomes(session=session, clock=clock),
        summaries=PostgresSummaries(session=session, add_closed_run=add_closed_run),
    )


def _export_api(
    settings: ResultsSettings, session: PostgresSession, processes: Processes, clock: Clock
) -> GrpcExportApi:
    stores = _stores(session, clock)
    show_summary = make_show_summary(stores, clock, processes.code)
    card_keys = Pepper(caller_key=usable_caller_key(settings.caller_key), purpose=b"result cards")
    return make_export_api(
        session=session,
        stores=stores,
        show_summary=show_summary,
        card_keys=card_keys,
        list_outcomes=make_list_outcomes(session, stores, clock),
    )


def _user_apis(
    session: PostgresSession,
    processes: Processes,
    compare_pending: ComparePending,
    close_run: CloseRun,
    clock: Clock,
) -> Mapping[str, Registration]:
    """The APIs that serve users, by the names of the services."""
    stores = _stores(session, clock)
    show_summary = make_show_summary(stores, clock, processes.code)
    results_api = GrpcResultsApi(
        show_summary=show_summary,
        list_outcomes=make_list_outcomes(session, stores, clock),
        close_run=close_run,
        record_contamination=RecordContamination(
            records=stores.records,
            summaries=PostgresSummaries(session=session, add_closed_run=add_closed_run),
        ),
        clock=clock,
    )
    rescore_task = RescoreTask(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresListedOutcomes(session=session),
        show_summary=show_summary,
        scorer=processes.scorer,
        by_code=ScoreByCode(runner=processes.code),
    )
    store_comparison = make_store_comparison(session, stores, processes.calls)
    comparisons = make_comparison_api(
        stores, store_comparison.compare_pair, runs_of_models=PostgresLeaderboard(session=session)
    )
    return {
        grpc_results_api.SERVICE_NAME: results_api.register,
        grpc_answer_api.SERVICE_NAME: make_answer_api(session, stores, clock).register,
        grpc_annotation_api.SERVICE_NAME: make_annotation_api(session, stores.records).register,
        grpc_rescore_api.SERVICE_NAME: grpc_rescore_api.GrpcRescoreApi(rescore_task=rescore_task).register,
        grpc_leaderboard_api.SERVICE_NAME: make_leaderboard_api(
            session, stores, compare_pending, clock
        ).register,
        grpc_comparison_api.SERVICE_NAME: comparisons.register,
    }
