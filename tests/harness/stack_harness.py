"""The whole of Proctor for a test: a local stack on free ports, a model server to ask, and a client."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from proctor.client.proctor_client import ProctorClient
from proctor.stack.local_stack import LocalStack
from proctor.stack.options import StackOptions, remote_pool
from proctor.v1 import run_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from proctor.values.providers.pool import Pool, Provider
from tests.fakes.eventually import eventually
from tests.harness.forks.services import start_warm
from tests.harness.keyed_suite import SUITE, write_keyed_suite
from tests.harness.model_server_process import ModelServerProcess, model_server_process
from tests.harness.servers import give_cluster

MODEL = "openai/fake"
READY_LIMIT_SECONDS = 60.0
CONNECT_LIMIT_SECONDS = 10.0
COMMAND_LIMIT_SECONDS = 60.0

# Faults are noticed sooner than in production, so that tests do not wait for them.
SHORT_TIMEOUTS = {
    "PROCTOR_WORKER_ACK_WAIT_SECONDS": "4",
    "PROCTOR_RESULTS_ACK_WAIT_SECONDS": "4",
    "PROCTOR_WORKER_REQUEST_TIMEOUT_SECONDS": "5",
    "PROCTOR_WORKER_ROLLOUT_REST_SECONDS": "2",
}


@dataclass(frozen=True)
class StackOrder:
    """Options of the stack of a test."""

    rows: int = 200
    is_long: bool = False
    concurrency: int = 64
    environment: Mapping[str, str] = field(default_factory=lambda: dict(SHORT_TIMEOUTS))
    # Instead of the pool that asks the fake model server, and beside it.
    pools: tuple[Pool, ...] = ()
    more_pools: tuple[Pool, ...] = ()
    # Folders of suites to have beside the keyed one.
    suites: tuple[Path, ...] = ()
    # What the fake model server serves, without provider; it answers each in another way.
    models: tuple[str, ...] = ("fake",)
    # Other names of models.
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StackHarness:
    """A running stack and its clients."""

    stack: LocalStack
    client: ProctorClient
    model_server: ModelServerProcess

    async def submit(self, order: run_pb2.RunOrder | None = None) -> str:
        """Submits a run over the keyed suite, or the given order; gives its id."""
        response = await self.client.runs.SubmitRun(
            scheduler_pb2.SubmitRunRequest(order=order or keyed_order())
        )
        return response.run.run_id

    @asynccontextmanager
    async def database(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection of the test's own, to count with, once Postgres is there (again)."""
        await eventually(self.stack.child("postgres").ready.is_set, "Postgres is ready", READY_LIMIT_SECONDS)
        connection = await asyncpg.connect(
            self.stack.postgres_dsn, timeout=CONNECT_LIMIT_SECONDS, command_timeout=COMMAND_LIMIT_SECONDS
        )
        try:
            yield connection
        finally:
            with suppress(TimeoutError):
                await connection.close(timeout=CONNECT_LIMIT_SECONDS)


def keyed_order(**changes: object) -> run_pb2.RunOrder:
    """An order for the keyed suite."""
    order = run_pb2.RunOrder(project_id=1, suite=SUITE, model=MODEL)
    for name, value in changes.items():
        setattr(order, name, value)
    return order


@asynccontextmanager
async def stack_harness(
    folder: Path, order: StackOrder | None = None, kind: type[LocalStack] = LocalStack
) -> AsyncIterator[StackHarness]:
    """Starts everything below `folder`, stops it at the end, and removes what Postgres has elsewhere."""
    wanted = order or StackOrder()
    write_keyed_suite(folder / "suites", wanted.rows, is_long=wanted.is_long)
    for suite in wanted.suites:
        (folder / "suites" / suite.name).symlink_to(suite)
    async with AsyncExitStack() as open_parts:
        server = await open_parts.enter_async_context(model_server_process(wanted.models))
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "OPENAI_API_KEY": "test",
            "PROCTOR_SCHEDULER_SUITES_DIR": str(folder / "suites"),
            # Tests look again and again, all as one user.
            "PROCTOR_SCHEDULER_MAX_REQUESTS_PER_MINUTE": "1000000",
            **wanted.environment,
        }
        fake_pool = remote_pool(
            Provider("openai", server.url, "OPENAI_API_KEY"), concurrency=wanted.concurrency
        )
        options = StackOptions(
            state_dir=folder / "state",
            pools=(*(wanted.pools or (fake_pool,)), *wanted.more_pools),
            aliases=wanted.aliases,
            gateway_http_address="127.0.0.1:0",
            gateway_grpc_address="127.0.0.1:0",
            environment=environment,
        )
        stack = kind(options, report=lambda _: None, start_program=start_warm)
        options.state_dir.mkdir()
        home = await give_cluster(options.state_dir, folder / "postgres.log")
        if not home.folder.is_relative_to(options.state_dir):
            # `nobody` cannot enter `folder`, and who removes that one removes nothing outside of it.
            open_parts.push_async_callback(asyncio.to_thread, shutil.rmtree, home.folder)
        await stack.start()
        open_parts.push_async_callback(stack.stop)
        client = await open_parts.enter_async_context(ProctorClient(stack.gateway_grpc))
        yield StackHarness(stack, client, server)
