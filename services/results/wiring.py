"""The only module that knows all concrete parts of results: makes them, joins them, closes them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import grpc
from nats.aio.client import Client

from services.common.clock import Clock, SystemClock
from services.common.grpc.server import GrpcServer, serve_grpc
from services.common.lifecycle import every
from services.common.migrations import prepare_schema
from services.common.nats.access import NatsAccess
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.pull import Puller
from services.common.nats.streams import outcome_consumer
from services.common.postgres import PostgresSession, close_pool, connect_pool
from services.common.structured_logs import get_logger
from services.results import grpc_public_api, grpc_record_api
from services.results.answers import grpc_api as grpc_answer_api
from services.results.answers.grpc_api import GrpcAnswerApi
from services.results.answers.list_outcomes import ListOutcomes
from services.results.answers.list_side_by_side import ListSideBySide
from services.results.answers.mark_answers import MarkAnswers
from services.results.answers.postgres import (
    PostgresAnswers,
    PostgresGoldenAnswers,
    PostgresListedOutcomes,
    PostgresSameSamples,
)
from services.results.bounded_calls import BoundedCalls
from services.results.comparison import grpc_api as grpc_comparison_api
from services.results.comparison.compare_runs import ComparePair, CompareRuns, StoreComparison
from services.results.comparison.grpc_api import GrpcComparisonApi
from services.results.comparison.list_flips import ListFlips
from services.results.comparison.postgres import PostgresComparisons, PostgresPairs
from services.results.export import grpc_api as grpc_export_api
from services.results.export.export_golden_answers import ExportGoldenAnswers
from services.results.export.export_run import ExportRun
from services.results.export.grpc_api import FORMATS, GrpcExportApi
from services.results.export.postgres import PostgresExportMarks, PostgresExportRows
from services.results.grpc_public_api import GrpcPublicApi
from services.results.grpc_record_api import GrpcRecordApi, RecordUseCases
from services.results.leaderboard import grpc_api as grpc_leaderboard_api
from services.results.leaderboard.add_baselines import AddBaselines
from services.results.leaderboard.compare_peers import ComparePeers
from services.results.leaderboard.grpc_api import GrpcLeaderboardApi
from services.results.leaderboard.list_history import ListHistory
from services.results.leaderboard.postgres import (
    PostgresBaselines,
    PostgresClaims,
    PostgresLeaderboard,
    PostgresPeers,
    add_closed_run,
)
from services.results.leaderboard.rank_models import RankModels
from services.results.outcomes.delete_run import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.nats import NatsOutcomeConsumer, NatsProgressPublisher, RecordingLimits
from services.results.outcomes.postgres import PostgresOutcomes, PostgresReuse
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA, ReadLimits, ReadSession
from services.results.rescoring import grpc_api as grpc_rescore_api
from services.results.rescoring.grpc_api import GrpcRescoreApi
from services.results.rescoring.rescore_task import RescoreTask
from services.results.runs.open_run import OpenRun
from services.results.runs.postgres import PostgresRunRecords
from services.results.samples.postgres import PostgresSampleMessages, PostgresSampleSets
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.scoring.score_answer import AnswerScorer
from services.results.scoring.scorer_pool import ScorerPool
from services.results.settings import ResultsSettings
from services.results.summaries.close_run import CloseRun
from services.results.summaries.ports import Stores
from services.results.summaries.postgres import PostgresSummaries
from services.results.summaries.show_summary import PartialSummaries, ShowSummary
from services.results.summaries.summarize_run import SummarizeRun

SWEEP_SECONDS = 300.0
BASELINE_SECONDS = 2.0
COMPARE_SECONDS = 1.0
# Comparisons and baselines of closed runs take one each, those that users wait for the others.
CALL_PROCESSES = 4

log = get_logger()


@dataclass(frozen=True, slots=True)
class ResultsParts:
    """What the service is made of."""

    grpc: GrpcServer
    consumer: NatsOutcomeConsumer
    sample_sets: StoreSampleSet
    add_baselines: AddBaselines
    compare_peers: ComparePeers


@dataclass(frozen=True, slots=True)
class Sessions:
    """Each with a pool of its own, so that none waits for the connections of another."""

    recording: PostgresSession
    work: PostgresSession
    reads: PostgresSession


@dataclass(frozen=True, slots=True)
class Processes:
    """Beside the service: they score texts, and compute figures that may take long."""

    scorer: ScorerPool
    calls: BoundedCalls


class RunningResults:
    """Records what comes in, answers what is asked."""

    def __init__(self, parts: ResultsParts, drain_seconds: float) -> None:
        self.grpc = parts.grpc
        self._consumer = parts.consumer
        self._sample_sets = parts.sample_sets
        self._drain_seconds = drain_seconds
        self._consuming = asyncio.ensure_future(parts.consumer.run())
        self._loops = [
            asyncio.ensure_future(every(SWEEP_SECONDS, self._sweep, name="sweep sample sets")),
            asyncio.ensure_future(every(BASELINE_SECONDS, parts.add_baselines.add, name="add baselines")),
            asyncio.ensure_future(every(COMPARE_SECONDS, parts.compare_peers.compare, name="compare peers")),
        ]

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await asyncio.shield(self._consuming)

    async def stop_taking_work(self) -> None:
        self._consumer.stop()
        await self.grpc.stop(self._drain_seconds)

    async def drain(self) -> None:
        """What cannot be recorded in time comes again: it was not acknowledged."""
        await asyncio.wait((self._consuming,), timeout=self._drain_seconds)

    async def close(self) -> None:
        for task in (self._consuming, *self._loops):
            task.cancel()
        await asyncio.gather(self._consuming, *self._loops, return_exceptions=True)

    async def _sweep(self) -> None:
        swept = await self._sample_sets.sweep()
        if swept:
            log.info("sample sets dropped", sets=swept)


@asynccontextmanager
async def running_results(settings: ResultsSettings) -> AsyncIterator[RunningResults]:
    async with AsyncExitStack() as opened:
        await prepare_schema(settings, SCHEMA, MIGRATIONS)
        sessions = await _connect(settings, opened)
        nats = await connect_nats(NatsAccess.of(settings), "results")
        opened.push_async_callback(nats.close)
        processes = Processes(ScorerPool(settings.scoring_processes), BoundedCalls(CALL_PROCESSES))
        opened.push_async_callback(processes.scorer.close)
        opened.push_async_callback(processes.calls.close)
        parts = await _parts(settings, sessions, nats, processes)
        opened.push_async_callback(parts.grpc.stop, 0)
        results = RunningResults(parts, settings.drain_seconds)
        opened.push_async_callback(results.close)
        yield results


async def _connect(settings: ResultsSettings, opened: AsyncExitStack) -> Sessions:
    async def pool(most: int, statement_seconds: float = 0.0) -> asyncpg.Pool:
        made = await connect_pool(
            settings.postgres_dsn, schema=SCHEMA, max_size=most, statement_seconds=statement_seconds
        )
        opened.push_async_callback(close_pool, made)
        return made

    patience = settings.patience_seconds
    limits = ReadLimits(settings.read_connections, settings.read_wait_seconds, settings.read_timeout_seconds)
    reads = await pool(limits.at_once, limits.statement_seconds)
    return Sessions(
        PostgresSession(await pool(settings.recording_connections), QUERIES, patience_seconds=patience),
        PostgresSession(await pool(settings.postgres_connections), QUERIES, patience_seconds=patience),
        ReadSession(reads, limits, patience_seconds=patience),
    )


async def _parts(
    settings: ResultsSettings, sessions: Sessions, nats: Client, processes: Processes
) -> ResultsParts:
    work, reads, clock = sessions.work, sessions.reads, SystemClock()
    stores = _stores(work)
    sample_sets = StoreSampleSet(
        sample_sets=stores.sample_sets,
        clock=clock,
        keep_staged=timedelta(seconds=settings.keep_staged_seconds),
    )
    apis = {
        grpc_record_api.SERVICE_NAME: _record_api(stores, work, sample_sets, clock).register,
        **_read_apis(reads, processes, clock),
    }
    return ResultsParts(
        grpc=await serve_grpc(
            settings.listen_address or settings.results_address, list(apis.values()), list(apis)
        ),
        consumer=_consumer(settings, _stores(sessions.recording), nats, processes.scorer),
        sample_sets=sample_sets,
        add_baselines=AddBaselines(
            records=stores.records,
            sample_sets=stores.sample_sets,
            baselines=PostgresBaselines(work),
            claims=PostgresClaims(work),
            calls=processes.calls,
            scorer=processes.scorer,
        ),
        compare_peers=ComparePeers(
            records=stores.records,
            leaderboard=PostgresLeaderboard(work),
            comparisons=PostgresComparisons(work),
            peers=PostgresPeers(work),
            claims=PostgresClaims(work),
            store_comparison=_store_comparison(stores, work, processes.calls),
        ),
    )


def _read_apis(
    session: PostgresSession, processes: Processes, clock: Clock
) -> Mapping[str, Callable[[grpc.aio.Server], None]]:
    """What users ask for, by the names of the services."""
    stores = _stores(session)
    show_summary = ShowSummary(
        records=stores.records,
        summaries=stores.summaries,
        partials=PartialSummaries(SummarizeRun(stores=stores, clock=clock).summarize, clock),
    )
    store_comparison = _store_comparison(stores, session, processes.calls)
    return {
        grpc_public_api.SERVICE_NAME: _public_api(stores, session, show_summary, clock).register,
        grpc_answer_api.SERVICE_NAME: _answer_api(stores, session, clock).register,
        grpc_export_api.SERVICE_NAME: _export_api(stores, session, show_summary).register,
        grpc_rescore_api.SERVICE_NAME: _rescore_api(stores, session, show_summary, processes.scorer).register,
        grpc_leaderboard_api.SERVICE_NAME: _leaderboard_api(session, store_comparison, clock).register,
        grpc_comparison_api.SERVICE_NAME: _comparison_api(stores, store_comparison.compare_pair).register,
    }


def _store_comparison(stores: Stores, session: PostgresSession, calls: BoundedCalls) -> StoreComparison:
    return StoreComparison(
        records=stores.records,
        comparisons=PostgresComparisons(session),
        compare_pair=ComparePair(sample_sets=stores.sample_sets, pairs=PostgresPairs(session), calls=calls),
    )


def _stores(session: PostgresSession) -> Stores:
    return Stores(
        records=PostgresRunRecords(session),
        sample_sets=PostgresSampleSets(session),
        outcomes=PostgresOutcomes(session),
        summaries=PostgresSummaries(session=session, add_closed_run=add_closed_run),
    )


def _record_api(
    stores: Stores, session: PostgresSession, sample_sets: StoreSampleSet, clock: Clock
) -> GrpcRecordApi:
    records, outcomes = stores.records, stores.outcomes
    summarize_run = SummarizeRun(stores=stores, clock=clock)
    return GrpcRecordApi(
        RecordUseCases(
            store_sample_set=sample_sets,
            read_samples=ReadSamples(samples=PostgresSampleMessages(session)),
            open_run=OpenRun(records=records),
            records=records,
            list_missing=ListMissing(records=records, outcomes=outcomes),
            close_run=CloseRun(records=records, summaries=stores.summaries, summarize_run=summarize_run),
            reuse_answers=ReuseAnswers(records=records, outcomes=outcomes, answers=PostgresReuse(session)),
            delete_run=DeleteRunRecord(records=records, outcomes=outcomes),
        )
    )


def _public_api(
    stores: Stores, session: PostgresSession, show_summary: ShowSummary, clock: Clock
) -> GrpcPublicApi:
    list_outcomes = ListOutcomes(
        records=stores.records,
        sample_sets=stores.sample_sets,
        outcomes=stores.outcomes,
        answers=PostgresAnswers(session),
        clock=clock,
    )
    return GrpcPublicApi(show_summary, list_outcomes)


def _answer_api(stores: Stores, session: PostgresSession, clock: Clock) -> GrpcAnswerApi:
    list_side_by_side = ListSideBySide(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresAnswers(session),
        same_samples=PostgresSameSamples(session),
        clock=clock,
    )
    mark_answers = MarkAnswers(records=stores.records, golden=PostgresGoldenAnswers(session))
    return GrpcAnswerApi(list_side_by_side, mark_answers)


def _export_api(stores: Stores, session: PostgresSession, show_summary: ShowSummary) -> GrpcExportApi:
    export_run = ExportRun(
        records=stores.records,
        rows=PostgresExportRows(session),
        outcomes=PostgresListedOutcomes(session),
        marks=PostgresExportMarks(session),
        show_summary=show_summary,
        formats=FORMATS,
    )
    export_golden_answers = ExportGoldenAnswers(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresAnswers(session),
        golden=PostgresGoldenAnswers(session),
    )
    return GrpcExportApi(export_run, export_golden_answers)


def _rescore_api(
    stores: Stores, session: PostgresSession, show_summary: ShowSummary, scorer: AnswerScorer
) -> GrpcRescoreApi:
    rescore_task = RescoreTask(
        records=stores.records,
        sample_sets=stores.sample_sets,
        answers=PostgresListedOutcomes(session),
        show_summary=show_summary,
        scorer=scorer,
    )
    return GrpcRescoreApi(rescore_task)


def _leaderboard_api(
    session: PostgresSession, store_comparison: StoreComparison, clock: Clock
) -> GrpcLeaderboardApi:
    leaderboard = PostgresLeaderboard(session)
    rank_models = RankModels(
        leaderboard=leaderboard,
        differences=PostgresComparisons(session),
        store_comparison=store_comparison,
        clock=clock,
    )
    return GrpcLeaderboardApi(rank_models, ListHistory(history=leaderboard, clock=clock))


def _comparison_api(stores: Stores, compare_pair: ComparePair) -> GrpcComparisonApi:
    pairs = compare_pair.pairs
    compare_runs = CompareRuns(
        records=stores.records, summaries=stores.summaries, pairs=pairs, compare_pair=compare_pair
    )
    list_flips = ListFlips(records=stores.records, sample_sets=stores.sample_sets, pairs=pairs)
    return GrpcComparisonApi(compare_runs, list_flips)


def _consumer(
    settings: ResultsSettings, stores: Stores, nats: Client, scorer: AnswerScorer
) -> NatsOutcomeConsumer:
    ack_wait_seconds = settings.ack_wait_seconds
    record_outcomes = RecordOutcomes(
        records=stores.records,
        sample_sets=stores.sample_sets,
        outcomes=stores.outcomes,
        progress=NatsProgressPublisher(nats),
        scorer=scorer,
    )
    return NatsOutcomeConsumer(
        puller=Puller(JetStream(nats), outcome_consumer(ack_wait_seconds)),
        record=record_outcomes.record,
        limits=RecordingLimits(
            outcomes=settings.batch_outcomes,
            linger_seconds=settings.linger_seconds,
            ack_wait_seconds=ack_wait_seconds,
        ),
        shard_key=settings.shard_key.get_secret_value(),
    )
