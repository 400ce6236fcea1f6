"""Makes results: opens its connections and processes, joins the parts of its topics, and closes them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
from nats.aio.client import Client

from services.common.clock import Clock, SystemClock
from services.common.grpc.server import GrpcServer, Registration, serve_grpc
from services.common.lifecycle import BackgroundLoops, every
from services.common.migrations import prepare_schema
from services.common.nats.access import NatsAccess
from services.common.nats.connection import connect_nats
from services.common.postgres import PostgresSession, close_pool, connect_pool, watch_pool
from services.common.structured_logs import get_logger
from services.results.answers import grpc_api as grpc_answer_api
from services.results.answers import grpc_results
from services.results.answers.grpc_results import GrpcPublicApi
from services.results.answers.postgres import (
    PostgresListedOutcomes,
)
from services.results.answers.wiring import make_answer_api, make_list_outcomes
from services.results.comparison import grpc_api as grpc_comparison_api
from services.results.comparison.wiring import make_comparison_api, make_store_comparison
from services.results.export import grpc_api as grpc_export_api
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
)
from services.results.outcomes.delete_run_record import DeleteRunRecord
from services.results.outcomes.list_missing import ListMissing
from services.results.outcomes.nats import NatsOutcomeConsumer, NatsProgressPublisher
from services.results.outcomes.postgres import PostgresOutcomes, PostgresReuse
from services.results.outcomes.record_outcomes import RecordOutcomes
from services.results.outcomes.reuse_answers import ReuseAnswers
from services.results.outcomes.wiring import make_outcome_consumer
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.processes.bounded_calls import BoundedCalls
from services.results.reads.postgres import ReadLimits, ReadSession
from services.results.rescoring import grpc_api as grpc_rescore_api
from services.results.rescoring.grpc_api import GrpcRescoreApi
from services.results.rescoring.rescore_task import RescoreTask
from services.results.runs.delete_unused_sets import DeleteUnusedSets
from services.results.runs.open_run import OpenRun
from services.results.runs.postgres import PostgresRunRecords
from services.results.samples.postgres import PostgresSampleMessages, PostgresSampleSets
from services.results.samples.store_sample_set import ReadSamples, StoreSampleSet
from services.results.scoring.processes.scorer_pool import ScorerPool
from services.results.settings import ResultsSettings
from services.results.summaries import grpc_api as grpc_record_api
from services.results.summaries.close_run import CloseRun
from services.results.summaries.grpc_api import GrpcRecordApi
from services.results.summaries.ports import Stores
from services.results.summaries.postgres import PostgresSummaries
from services.results.summaries.show_summary import PartialSummaries, ShowSummary
from services.results.summaries.summarize_run import SummarizeRun

# Unused sets are kept for hours (`KEEP_UNUSED`): minutes more do not matter.
SWEEP_SECONDS = 300.0
# Both are often, since the pages of a run that just ended show them; a look is one query.
BASELINE_SECONDS = 2.0
COMPARE_SECONDS = 1.0
# Baselines, comparisons with peers and those of leaderboards take one each, what users wait for the others.
CALL_PROCESSES = 5
_CONSUMING = "consume outcomes"

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultsParts:
    """Parts of the service."""

    grpc: GrpcServer
    consumer: NatsOutcomeConsumer
    unused_sets: DeleteUnusedSets
    add_baselines: AddBaselines
    compare_peers: ComparePeers
    compare_pending: ComparePending


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Sessions, each with a pool of its own, so that none waits for the connections of another."""

    recording: PostgresSession
    work: PostgresSession
    reads: PostgresSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Processes beside the service: they score texts, and compute figures that may take long."""

    scorer: ScorerPool
    calls: BoundedCalls


class RunningResults:
    """Records what comes in, answers what is asked."""

    def __init__(self, *, parts: ResultsParts, drain_seconds: float) -> None:
        self.grpc = parts.grpc
        self._consumer = parts.consumer
        self._unused_sets = parts.unused_sets
        self._drain_seconds = drain_seconds
        self._loops = BackgroundLoops(
            loops={
                _CONSUMING: parts.consumer.run(),
                "sweep sample sets": every(SWEEP_SECONDS, self._sweep, name="sweep sample sets"),
                "add baselines": every(BASELINE_SECONDS, parts.add_baselines.add, name="add baselines"),
                "compare peers": every(COMPARE_SECONDS, parts.compare_peers.compare, name="compare peers"),
                "compare pending": every(
                    COMPARE_SECONDS, parts.compare_pending.compare, name="compare pending"
                ),
            }
        )

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        self._consumer.stop()
        await self.grpc.stop(self._drain_seconds)

    async def drain(self) -> None:
        """Wait a bounded time until what was pulled is recorded. The rest is redelivered."""
        await self._loops.wait_ended(_CONSUMING, self._drain_seconds)

    async def close(self) -> None:
        await self._loops.cancel()

    async def _sweep(self) -> None:
        swept = await self._unused_sets.delete()
        if swept:
            log.info("sample sets dropped", sets=swept)


@asynccontextmanager
async def running_results(settings: ResultsSettings) -> AsyncIterator[RunningResults]:
    async with AsyncExitStack() as opened:
        await prepare_schema(settings, SCHEMA, MIGRATIONS)
        sessions = await _connect(settings, opened)
        nats = await connect_nats(NatsAccess.of(settings), "results")
        opened.push_async_callback(nats.close)
        processes = Processes(
            scorer=ScorerPool(max_processes=settings.scoring_processes),
            calls=BoundedCalls(max_processes=CALL_PROCESSES),
        )
        opened.push_async_callback(processes.scorer.close)
        opened.push_async_callback(processes.calls.close)
        parts = await _parts(settings, sessions, nats, processes)
        opened.push_async_callback(parts.grpc.stop, 0)
        results = RunningResults(parts=parts, drain_seconds=settings.drain_seconds)
        opened.push_async_callback(results.close)
        yield results


async def _connect(settings: ResultsSettings, opened: AsyncExitStack) -> Sessions:
    async def pool(name: str, most: int, statement_seconds: float = 0.0) -> asyncpg.Pool:
        made = await connect_pool(
            settings.postgres_dsn, schema=SCHEMA, max_size=most, statement_seconds=statement_seconds
        )
        opened.push_async_callback(close_pool, made)
        watch_pool(name, made)
        return made

    patience = settings.patience_seconds
    limits = ReadLimits(
        at_once=settings.read_connections,
        wait_seconds=settings.read_wait_seconds,
        statement_seconds=settings.read_timeout_seconds,
    )
    reads = await pool("reads", limits.at_once, limits.statement_seconds)
    recording = await pool("recording", settings.recording_connections)
    work = await pool("work", settings.postgres_connections)
    return Sessions(
        recording=PostgresSession(pool=recording, queries=QUERIES, patience_seconds=patience),
        work=PostgresSession(pool=work, queries=QUERIES, patience_seconds=patience),
        reads=ReadSession(pool=reads, limits=limits, patience_seconds=patience),
    )


async def _parts(
    settings: ResultsSettings, sessions: Sessions, nats: Client, processes: Processes
) -> ResultsParts:
    work, recording, clock = sessions.work, _stores(sessions.recording), SystemClock()
    stores = _stores(work)
    record_outcomes = RecordOutcomes(
        records=recording.records,
        sample_sets=recording.sample_sets,
        outcomes=recording.outcomes,
        progress=NatsProgressPublisher(connection=nats),
        scorer=processes.scorer,
    )
    store_comparison = make_store_comparison(work, stores, processes.calls)
    compare_pending = make_compare_pending(work, store_comparison, clock)
    apis = {
        grpc_record_api.SERVICE_NAME: _record_api(work, stores, clock).register,
        **_read_apis(sessions.reads, processes, compare_pending, clock),
    }
    address = settings.listen_address or settings.results_address
    return ResultsParts(
        grpc=await serve_grpc(address, list(apis.values()), list(apis)),
        consumer=make_outcome_consumer(settings, nats, record_outcomes),
        unused_sets=DeleteUnusedSets(
            records=stores.records,
            sample_sets=stores.sample_sets,
            clock=clock,
            keep_staged=timedelta(seconds=settings.keep_staged_seconds),
        ),
        add_baselines=make_add_baselines(work, stores, calls=processes.calls, scorer=processes.scorer),
        compare_peers=make_compare_peers(work, stores, store_comparison),
        compare_pending=compare_pending,
    )


def _stores(session: PostgresSession) -> Stores:
    return Stores(
        records=PostgresRunRecords(session=session),
        sample_sets=PostgresSampleSets(session=session),
        outcomes=PostgresOutcomes(session=session),
        summaries=PostgresSummaries(session=session, add_closed_run=add_closed_run),
    )


def _record_api(session: PostgresSession, stores: Stores, clock: Clock) -> GrpcRecordApi:
    """The API that the scheduler calls."""
    records, outcomes = stores.records, stores.outcomes
    return GrpcRecordApi(
        store_sample_set=StoreSampleSet(sample_sets=stores.sample_sets),
        read_samples=ReadSamples(samples=PostgresSampleMessages(session=session)),
        open_run=OpenRun(records=records),
        records=records,
        list_missing=ListMissing(records=records, outcomes=outcomes),
        close_run=CloseRun(
            records=records,
            summaries=stores.summaries,
            summarize_run=SummarizeRun(stores=stores, clock=clock),
        ),
        reuse_answers=ReuseAnswers(
            records=records, outcomes=outcomes, answers=PostgresReuse(session=session)
        ),
        delete_run=DeleteRunRecord(records=records, outcomes=outcomes),
    )


def _read_apis(
    session: PostgresSession, processes: Processes, compare_pending: ComparePending, clock: Clock
) -> Mapping[str, Registration]:
    """The APIs that serve users, by the names of the services."""
    stores = _stores(session)
    show_summary = ShowSummary(
        records=stores.records,
        summaries=stores.summaries,
        partials=PartialSummaries(compute=SummarizeRun(stores=stores, clock=clock).summarize, clock=clock),
    )
    public = GrpcPublicApi(
        show_summary=show_summary, list_outcomes=make_list_outcomes(session, stores, clock)
    )
    rescoring = GrpcRescoreApi(
        rescore_task=RescoreTask(
            records=stores.records,
            sample_sets=stores.sample_sets,
            answers=PostgresListedOutcomes(session=session),
            show_summary=show_summary,
            scorer=processes.scorer,
        )
    )
    store_comparison = make_store_comparison(session, stores, processes.calls)
    comparisons = make_comparison_api(
        stores, store_comparison.compare_pair, runs_of_models=PostgresLeaderboard(session=session)
    )
    return {
        grpc_results.SERVICE_NAME: public.register,
        grpc_answer_api.SERVICE_NAME: make_answer_api(session, stores, clock).register,
        grpc_export_api.SERVICE_NAME: make_export_api(session, stores, show_summary).register,
        grpc_rescore_api.SERVICE_NAME: rescoring.register,
        grpc_leaderboard_api.SERVICE_NAME: make_leaderboard_api(session, compare_pending, clock).register,
        grpc_comparison_api.SERVICE_NAME: comparisons.register,
    }
