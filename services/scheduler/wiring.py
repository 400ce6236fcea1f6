"""Makes the scheduler: reads its files, opens its connections, connects its topics, and runs them.

What is opened is closed in reverse.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

from proctor.values import messaging
from services.common.clock import SystemClock
from services.common.grpc.backend_server import BackendServer, serve_backend
from services.common.grpc.client import open_channel
from services.common.grpc.signatures import SignedCalls, Signer
from services.common.lifecycle import BackgroundLoops, every, working_seconds
from services.common.migrations import prepare_schema
from services.common.nats.access import NatsAccess
from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.process import return_freed_memory, usable_caller_key, usable_dispatch_proof_key
from services.common.requests.open_sessions import SessionOpener
from services.common.tls.certificate_files import CertificateFiles
from services.scheduler.leadership.postgres import PostgresClock
from services.scheduler.leadership.wiring import lead
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA, Connections
from services.scheduler.projects.postgres import check_guarded
from services.scheduler.scaling.grpc_api import SERVICE_NAME as SCALER
from services.scheduler.settings import SchedulerSettings
from services.scheduler.topics import Topics, make_topics, read_definitions

# How soon a thread that renders samples lets the event loop run. Python's default is five times as long
# (decision 0032).
THREAD_SWITCH_SECONDS = 0.001
# How late the health of streams follows what is known of them.
_REPORT_SECONDS = 1.0


class RunningScheduler:
    """Answers calls; leads, or waits to be elected."""

    def __init__(self, *, grpc_server: BackendServer, loops: BackgroundLoops, drain_seconds: float) -> None:
        self.grpc = grpc_server
        self._loops = loops
        self._drain_seconds = drain_seconds

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # the port of lifecycle
        await self.grpc.set_serving(is_ready)

    async def wait_failed(self) -> None:
        await self._loops.wait_failed()

    async def stop_taking_work(self) -> None:
        """Refuses calls. Ends leadership: another replica is elected and repeats what was interrupted here.

        Side by side, since calls and loops may both wait for a server that is gone.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._drain_seconds):
                await asyncio.gather(self._loops.cancel(), self.grpc.stop(self._drain_seconds))

    async def drain(self) -> None:
        """Calls have had their time."""


@asynccontextmanager
async def running_scheduler(settings: SchedulerSettings) -> AsyncIterator[RunningScheduler]:
    definitions = read_definitions(settings)
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    return_freed_memory()
    async with AsyncExitStack() as opened:
        connections, clock = await _connect(settings, opened)
        topics = make_topics(settings, connections, definitions)
        opened.push_async_callback(topics.workers.list_models.close)
        # Every scheduler follows the reports of results and of workers, also while another one leads.
        await topics.progress.reports.start()
        await topics.rate_limits.reports.start()
        apis = topics.apis()
        address = settings.listen_address or settings.scheduler_address
        server = await serve_backend(settings, address, apis, _signed_calls(settings))
        opened.push_async_callback(server.stop, 0)
        loops = BackgroundLoops(
            loops={
                **topics.loops(),
                "report streams": every(
                    _REPORT_SECONDS, partial(_report_streams, topics, server), name="report streams"
                ),
                "read the clock of postgres": clock.keep(),
                "lead when elected": lead(settings, loops_of=topics.leader_loops),
            }
        )
        opened.push_async_callback(loops.cancel)
        yield RunningScheduler(
            grpc_server=server, loops=loops, drain_seconds=working_seconds(settings.drain_seconds)
        )


def _signed_calls(settings: SchedulerSettings) -> SignedCalls:
    """All are the gateway's, but for those of KEDA, which cannot sign."""
    gateway = Signer(key=usable_caller_key(settings.caller_key))
    return SignedCalls(public=(gateway,), internal=gateway, unsigned=frozenset({SCALER}))


async def _report_streams(topics: Topics, server: BackendServer) -> None:
    """As health of their own: the scheduler serves while NATS refuses messages."""
    await server.report(messaging.STREAMS_HEALTH, topics.streams.keep.can_be_used)
    await server.report(messaging.STREAM_WRITES_HEALTH, topics.streams.keep.can_be_written)


async def _connect(settings: SchedulerSettings, opened: AsyncExitStack) -> tuple[Connections, PostgresClock]:
    await prepare_schema(settings, SCHEMA, MIGRATIONS)
    nats = await connect_nats(NatsAccess.of(settings), "scheduler")
    opened.push_async_callback(nats.close)
    signer = Signer(key=usable_dispatch_proof_key(settings.dispatch_proof_key).encode())
    results = open_channel(settings.results_address, tls=CertificateFiles.of(settings), signer=signer)
    opened.push_async_callback(results.close)
    postgres = SessionOpener(settings=settings, schema=SCHEMA, queries=QUERIES, opened=opened)
    reads = await postgres.reads()
    session = await postgres.session("work", settings.postgres_connections)
    await check_guarded(session)
    clock = PostgresClock(session=session, machine=SystemClock())
    # Before anything is decided by it; a loop keeps it from then on.
    await clock.sync()
    jetstream = JetStream(connection=nats)
    connections = Connections(
        postgres=session, reads=reads, jetstream=jetstream, results=results, clock=clock
    )
    return connections, clock
