"""The only module that knows all concrete parts of results: makes them, joins them, closes them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
from nats.aio.client import Client

from services.common.clock import SystemClock
from services.common.grpc_server import GrpcServer, serve_grpc
from services.common.jetstream import JetStream, connect_nats
from services.common.lifecycle import every
from services.common.postgres import connect_pool, migrate
from services.common.structured_logs import get_logger
from services.common.subjects import outcome_consumer
from services.results import grpc_public_api, grpc_record_api
from services.results.answers import grpc_answer_api
from services.results.answers.export_golden_answers import ExportGoldenAnswers
from services.results.answers.find_matching import FindMatching
from services.results.answers.grpc_answer_api import GrpcAnswerApi
from services.results.answers.list_outcomes import ListOutcomes
from services.results.answers.list_side_by_side import ListSideBySide, SideBySideStores
from services.results.answers.mark_answers import MarkAnswers
from services.results.answers.postgres_answers import PostgresAnswers, PostgresSameSamples
from services.results.answers.postgres_golden_answers import PostgresGoldenAnswers
from services.results.comparisons import grpc_comparison_api
from services.results.comparisons.compare_pair import ComparePair
from services.results.comparisons.compare_runs import CompareRuns
from services.results.comparisons.grpc_comparison_api import GrpcComparisonApi
from services.results.comparisons.list_flips import ListFlips
from services.results.comparisons.postgres_comparisons import PostgresComparisons
from services.results.comparisons.postgres_pairs import PostgresPairs
from services.results.comparisons.store_comparisons import StoreComparisons
from services.results.exports import grpc_export_api
from services.results.exports.export_run import ExportRun, ExportSources
from services.results.exports.grpc_export_api import FORMS, GrpcExportApi
from services.results.exports.postgres_export_marks import PostgresExportMarks
from services.results.exports.postgres_exports import PostgresExports
from services.results.exports.postgres_lines import PostgresLines
from services.results.grpc_public_api import GrpcPublicApi
from services.results.grpc_record_api import GrpcRecordApi, RecordUseCases
from services.results.outcomes.delete_run import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.nats import BatchLimits, NatsOutcomeConsumer, NatsProgressPublisher
from services.results.outcomes.postgres import PostgresOutcomes, PostgresReuse
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.postgres_session import MIGRATIONS, SCHEMA, PostgresSession
from services.results.rescoring import grpc_rescore_api
from services.results.rescoring.grpc_rescore_api import GrpcRescoreApi
from services.results.rescoring.rescore_task import RescoreTask
from services.results.runs.open_run import OpenRun
from services.results.runs.postgres import PostgresRunRecords
from services.results.runs.report_counts import ReportCounts
from services.results.samples.postgres import PostgresAskedSamples, PostgresSampleSets
from services.results.samples.read_samples import ListAskedSamples
from services.results.samples.store_sample_set import StoreSampleSet
from services.results.settings import ResultsSettings
from services.results.standings import grpc_standings_api
from services.results.standings.add_baselines import AddBaselines
from services.results.standings.grpc_standings_api import GrpcStandingsApi
from services.results.standings.list_history import ListHistory
from services.results.standings.postgres_baselines import PostgresBaselines
from services.results.standings.postgres_standings import PostgresStandings
from services.results.standings.rank_models import RankModels
from services.results.summaries.close_run import CloseRun
from services.results.summaries.ports import Stores
from services.results.summaries.summarize_run import SummarizeRun

SWEEP_SECONDS = 300.0
BASELINE_SECONDS = 2.0
COMPARE_SECONDS = 1.0
CLOSE_SECONDS = 5.0

log = get_logger()


@dataclass(frozen=True, slots=True)
class ResultsParts:
    """What the service is made of."""

    grpc: GrpcServer
    consumer: NatsOutcomeConsumer
    sample_sets: StoreSampleSet
    add_baselines: AddBaselines
    store_comparisons: StoreComparisons


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
            asyncio.ensure_future(every(BASELINE_SECONDS, parts.add_baselines, name="add baselines")),
            asyncio.ensure_future(every(COMPARE_SECONDS, parts.store_comparisons, name="store comparisons")),
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
        await migrate(settings.postgres_dsn, SCHEMA, MIGRATIONS)
        pool = await connect_pool(settings.postgres_dsn, schema=SCHEMA, max_size=settings.results_pool_size)
        opened.push_async_callback(_close_pool, pool)
        nats = await connect_nats(settings.nats_url, "results")
        opened.push_async_callback(nats.close)
        parts = await _parts(settings, pool, nats)
        opened.push_async_callback(parts.grpc.stop, 0)
        results = RunningResults(parts, settings.results_drain_seconds)
        opened.push_async_callback(results.close)
        yield results


async def _parts(settings: ResultsSettings, pool: asyncpg.Pool, nats: Client) -> ResultsParts:
    session = PostgresSession(pool, patience_seconds=settings.results_patience_seconds)
    stores = Stores(PostgresRunRecords(session), PostgresSampleSets(session), PostgresOutcomes(session))
    clock = SystemClock()
    keep_staged = timedelta(seconds=settings.results_keep_staged_seconds)
    sample_sets = StoreSampleSet(stores.sample_sets, clock, keep_staged)
    summarize = SummarizeRun(stores, clock)
    record_api = GrpcRecordApi(
        RecordUseCases(
            sample_sets,
            ListAskedSamples(PostgresAskedSamples(session)),
            OpenRun(stores.records),
            ReportCounts(stores.records),
            ListMissing(stores.records, stores.outcomes),
            CloseRun(stores.records, summarize),
            ReuseAnswers(stores.records, stores.outcomes, PostgresReuse(session)),
            DeleteRunRecord(stores),
        )
    )
    answers, golden = PostgresAnswers(session), PostgresGoldenAnswers(session)
    public_api = GrpcPublicApi(summarize, ListOutcomes(stores, answers, FindMatching(answers, clock)))
    side_by_side = SideBySideStores(stores, answers, PostgresSameSamples(session))
    mark_answers = MarkAnswers(stores.records, golden)
    answer_api = GrpcAnswerApi(ListSideBySide(side_by_side, clock), mark_answers)
    exports = PostgresExports(session)
    export_run = ExportRun(_export_sources(stores, session), summarize, FORMS)
    export_api = GrpcExportApi(export_run, ExportGoldenAnswers(stores, answers, golden))
    rescore_api = GrpcRescoreApi(RescoreTask(stores, exports, summarize))
    pairs = PostgresPairs(session)
    compare_runs = CompareRuns(stores.records, stores.sample_sets, pairs)
    comparison_api = GrpcComparisonApi(compare_runs, ListFlips(stores, pairs))
    standings = PostgresStandings(session)
    comparisons = PostgresComparisons(session)
    compare_pair = ComparePair(stores.records, comparisons, compare_runs)
    rank_models = RankModels(standings, comparisons, compare_pair, clock)
    standings_api = GrpcStandingsApi(rank_models, ListHistory(standings, clock))
    apis = {
        grpc_record_api.SERVICE_NAME: record_api.register,
        grpc_public_api.SERVICE_NAME: public_api.register,
        grpc_answer_api.SERVICE_NAME: answer_api.register,
        grpc_export_api.SERVICE_NAME: export_api.register,
        grpc_rescore_api.SERVICE_NAME: rescore_api.register,
        grpc_standings_api.SERVICE_NAME: standings_api.register,
        grpc_comparison_api.SERVICE_NAME: comparison_api.register,
    }
    grpc = await serve_grpc(settings.results_address, list(apis.values()), list(apis))
    add_baselines = AddBaselines(stores, PostgresBaselines(session))
    store_comparisons = StoreComparisons(stores.records, standings, comparisons, compare_pair)
    consumer = _consumer(settings, stores, nats)
    return ResultsParts(grpc, consumer, sample_sets, add_baselines, store_comparisons)


def _export_sources(stores: Stores, session: PostgresSession) -> ExportSources:
    lines, marks = PostgresLines(session), PostgresExportMarks(session)
    return ExportSources(stores.records, lines, PostgresExports(session), marks)


def _consumer(settings: ResultsSettings, stores: Stores, nats: Client) -> NatsOutcomeConsumer:
    ack_wait_seconds = settings.results_ack_wait_seconds
    return NatsOutcomeConsumer(
        JetStream(nats).puller(outcome_consumer(ack_wait_seconds)),
        RecordOutcomes(stores, NatsProgressPublisher(nats)),
        BatchLimits(settings.results_batch_outcomes, settings.results_linger_seconds, ack_wait_seconds),
    )


async def _close_pool(pool: asyncpg.Pool) -> None:
    """A Postgres that is away does not answer a good-bye."""
    try:
        await asyncio.wait_for(pool.close(), CLOSE_SECONDS)
    except TimeoutError:
        pool.terminate()
