"""Makes results: opens its connections and processes, connects its topics, and runs them.

What is opened is closed in reverse.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from services.common.grpc.backend_server import BackendServer, serve_backend
from services.common.grpc.signatures import SignedCalls, Signer
from services.common.lifecycle import BackgroundLoops, working_seconds
from services.common.migrations import prepare_schema
from services.common.nats.access import NatsAccess
from services.common.nats.connection import connect_nats
from services.common.process import usable_caller_key, usable_dispatch_proof_key
from services.common.processes.bounded_calls import BoundedCalls
from services.common.requests.open_sessions import SessionOpener
from services.common.sandboxes.task_code.bubblewrap import LIMITS_OF_ANSWERS, make_code_runner
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.postgres import check_guarded
from services.results.scoring.processes.scorer_pool import ScorerPool
from services.results.settings import ResultsSettings
from services.results.topics import CONSUMING, Connections, Processes, Topics, make_topics

# Baselines, comparisons with peers and comparisons of leaderboards take one process each. Calls of users take
# the others.
CALL_PROCESSES = 5


class RunningResults:
    """Records outcomes and answers calls."""

    def __init__(
        self, *, grpc_server: BackendServer, topics: Topics, loops: BackgroundLoops, drain_seconds: float
    ) -> None:
        self.grpc = grpc_server
        self._consumer = topics.consumer
        self._loops = loops
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        self._consumer.stop()

    async def drain(self) -> None:
        """Waits a bounded time for calls, and until what was pulled is recorded. The rest is redelivered."""
        seconds = self._drain_seconds
        await asyncio.gather(self.grpc.stop(seconds), self._loops.wait_ended(CONSUMING, seconds))


@asynccontextmanager
async def running_results(settings: ResultsSettings) -> AsyncIterator[RunningResults]:
    async with AsyncExitStack() as opened:
        connections = await _connect(settings, opened)
        processes = Processes(
            scorer=ScorerPool(max_processes=settings.scoring_processes),
            calls=BoundedCalls(max_processes=CALL_PROCESSES),
            code=make_code_runner(settings.task_code, settings.task_code_packages, LIMITS_OF_ANSWERS),
        )
        opened.push_async_callback(processes.scorer.close)
        opened.push_async_callback(processes.calls.close)
        topics = make_topics(settings, connections, processes)
        address = settings.listen_address or settings.results_address
        server = await serve_backend(settings, address, topics.apis, _signed_calls(settings))
        opened.push_async_callback(server.stop, 0)
        loops = BackgroundLoops(loops=topics.loops())
        opened.push_async_callback(loops.cancel)
        opened.push_async_callback(topics.close_run.stop)
        yield RunningResults(
            grpc_server=server,
            topics=topics,
            loops=loops,
            drain_seconds=working_seconds(settings.drain_seconds),
        )


def _signed_calls(settings: ResultsSettings) -> SignedCalls:
    """Records of runs are the scheduler's, whose key the gateway has not."""
    gateway = Signer(key=usable_caller_key(settings.caller_key))
    scheduler = Signer(key=usable_dispatch_proof_key(settings.dispatch_proof_key).encode())
    return SignedCalls(public=(gateway, scheduler), internal=scheduler)


async def _connect(settings: ResultsSettings, opened: AsyncExitStack) -> Connections:
    await prepare_schema(settings, SCHEMA, MIGRATIONS)
    postgres = SessionOpener(settings=settings, schema=SCHEMA, queries=QUERIES, opened=opened)
    reads = await postgres.reads()
    recording = await postgres.session("recording", settings.recording_connections)
    work = await postgres.session("work", settings.postgres_connections)
    await check_guarded(work)
    nats = await connect_nats(NatsAccess.of(settings), "results")
    opened.push_async_callback(nats.close)
    return Connections(recording=recording, work=work, reads=reads, nats=nats)
