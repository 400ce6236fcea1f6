"""The local stack with the real Postgres and NATS, and services that only report health."""

import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg
import nats
import psutil
import pytest

from proctor.stack.errors import ChildFailedToStart, PortTaken, StackAlreadyRunning
from proctor.stack.local_stack import LocalStack, running_stack
from proctor.stack.options import StackOptions, remote_pool
from proctor.stack.servers.postgres import PostgresServer
from proctor.stack.servers.postgres_home import find_postgres_home
from proctor.stack.state import is_locked, read_stack_state
from proctor.stack.supervision.child import SupervisedChild
from proctor.values.providers.pool import Provider
from tests.fakes.eventually import eventually
from tests.fakes.stack.standin_service import standin_modules
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.servers import give_cluster

REPOSITORY = Path(__file__).parents[3]
EVERY_CHILD = ("postgres", "nats", "results", "scheduler", "gateway", "worker.remote")


@pytest.fixture
async def state_dir() -> AsyncIterator[Path]:
    """With a cluster of Postgres, which the supervisor's tests and `proctor up` make by initdb."""
    with temporary_state_dir() as folder:
        folder.mkdir()
        await give_cluster(folder, folder.with_name("postgres.log"))
        yield folder


@pytest.fixture
def reports() -> list[str]:
    return []


def stores_only(state_dir: Path) -> StackOptions:
    return StackOptions(state_dir, modules={})


def stack_harness(state_dir: Path, **options: str) -> StackOptions:
    """`options` are arguments of the stand-ins, by role."""
    return StackOptions(
        state_dir,
        pools=(remote_pool(Provider("openai", "http://127.0.0.1:9/v1", "OPENAI_API_KEY")),),
        gateway_http_address="127.0.0.1:0",
        gateway_grpc_address="127.0.0.1:0",
        modules=standin_modules(state_dir.parent / "journal", **options),
        environment={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "OPENAI_API_KEY": "not-for-everybody",
            "ANTHROPIC_API_KEY": "for-nobody",
            "AWS_SECRET_ACCESS_KEY": "for-the-scheduler",
            "PROCTOR_GATEWAY_API_KEYS": "for-the-gateway",
        },
    )


def journal(state_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (state_dir.parent / "journal").read_text().splitlines()]


def pids_of(stack: LocalStack) -> dict[str, int]:
    return {name: child.pid for name, child in stack.children.items() if child.pid is not None}


def family(pids: dict[str, int]) -> list[psutil.Process]:
    parents = [psutil.Process(pid) for pid in pids.values()]
    return parents + [child for parent in parents for child in parent.children(recursive=True)]


def none_alive(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


async def kill_and_see_again(stack: LocalStack, name: str) -> None:
    child = stack.child(name)
    killed = child.pid
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    await eventually(lambda: child.pid not in (killed, None) and child.ready.is_set(), f"{name} is back", 30)
    assert child.restarts >= 1


async def test_every_child_that_is_killed_is_started_again(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stack_harness(state_dir), reports.append) as stack:
        assert set(stack.children) == set(EVERY_CHILD)
        for name in EVERY_CHILD:
            await kill_and_see_again(stack, name)
        state = read_stack_state(state_dir)
        assert state is not None
        assert {name: child.pid for name, child in state.children.items()} == pids_of(stack)
        timeouts = {name: child.spec.stop_timeout_seconds for name, child in stack.children.items()}
        assert max(timeouts.values()) < state.stop_timeout_seconds <= sum(timeouts.values())
    assert "nats was killed by SIGKILL: starting it again" in reports
    assert reports[-1] in (state_dir / "logs" / "stack.log").read_text()


async def test_child_that_cannot_be_stopped_keeps_no_other_running(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = SupervisedChild.stop

    async def stop_in_vain(child: SupervisedChild) -> None:
        await stop(child)
        if child.name == "nats":
            raise TimeoutError

    monkeypatch.setattr(SupervisedChild, "stop", stop_in_vain)
    with pytest.raises(TimeoutError):
        async with running_stack(stores_only(state_dir)) as stack:
            processes = family(pids_of(stack))
    assert none_alive(processes)
    assert not is_locked(state_dir)


async def test_each_service_sees_its_own_secrets_and_all_stop_in_order_without_a_trace(
    state_dir: Path, reports: list[str]
) -> None:
    async with running_stack(stack_harness(state_dir), reports.append) as stack:
        processes = family(pids_of(stack))
        assert len(processes) > len(EVERY_CHILD), "the backends of Postgres are counted too"
    stopped = [line["role"] for line in journal(state_dir) if line["event"] == "stopped"]
    assert stopped == ["worker", "gateway", "scheduler", "results"]
    assert none_alive(processes)
    assert not is_locked(state_dir)
    assert read_stack_state(state_dir) is None
    assert not [line for line in reports if "killed" in line]
    assert_each_saw_its_own(state_dir)


def assert_each_saw_its_own(state_dir: Path) -> None:
    """Only the worker saw keys of providers, and only the others the database."""
    assert roles_that_saw("OPENAI_API_KEY", state_dir) == {"worker"}
    assert roles_that_saw("ANTHROPIC_API_KEY", state_dir) == set()
    assert roles_that_saw("AWS_SECRET_ACCESS_KEY", state_dir) == {"scheduler", "results"}
    assert roles_that_saw("PROCTOR_GATEWAY_API_KEYS", state_dir) == {"gateway"}
    assert roles_that_saw("PROCTOR_POSTGRES_DSN", state_dir) == {"scheduler", "results"}
    assert roles_that_saw("PROCTOR_NATS_URL", state_dir) == {"scheduler", "results", "worker"}


def roles_that_saw(variable: str, state_dir: Path) -> set[str]:
    return {line["role"] for line in journal(state_dir) if variable in line.get("environment", ())}


async def test_what_a_killed_worker_started_dies_with_it(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stack_harness(state_dir, worker="--leave-child"), reports.append) as stack:
        engine_pid = journal_child(state_dir)
        await kill_and_see_again(stack, "worker")
        await eventually(lambda: not psutil.pid_exists(engine_pid), "the engine of the killed worker is gone")


def journal_child(state_dir: Path) -> int:
    children = [line["child"] for line in journal(state_dir) if line["role"] == "worker"]
    assert isinstance(children[0], int)
    return children[0]


async def test_a_service_rules_its_own_schema_and_nothing_else_of_postgres(
    state_dir: Path, reports: list[str]
) -> None:
    async with running_stack(stores_only(state_dir), reports.append) as stack:
        owner = await asyncpg.connect(stack.postgres_dsn)
        await owner.execute("CREATE TABLE results.secrets AS SELECT 1 AS one")
        await owner.close()
        home = find_postgres_home(state_dir)
        address = stack.postgres_dsn.rpartition("@")[2].partition("/")[0]
        server = PostgresServer(home, address, home.password_file.read_text().strip())
        scheduler = await asyncpg.connect(server.dsn_of("scheduler"))
        await scheduler.execute("CREATE TABLE scheduler.mine AS SELECT 1 AS one")
        for refused in (
            "SELECT * FROM results.secrets",
            "COPY scheduler.mine FROM PROGRAM 'echo 1'",
            "SELECT pg_read_file('/etc/passwd')",
            "CREATE ROLE another SUPERUSER",
            "CREATE TABLE public.anywhere (one int)",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await scheduler.execute(refused)
        await scheduler.close()


async def test_data_is_kept_between_starts(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stores_only(state_dir), reports.append) as stack:
        connection = await asyncpg.connect(stack.postgres_dsn)
        await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
        await connection.close()
        client = await nats.connect(stack.nats_url)
        await client.jetstream().add_stream(name="KEPT", subjects=["kept.>"])
        await client.jetstream().publish("kept.one", b"still here")
        await client.close()
    async with running_stack(stores_only(state_dir), reports.append) as stack:
        connection = await asyncpg.connect(stack.postgres_dsn)
        assert await connection.fetchval("SELECT answer FROM kept") == 42
        await connection.close()
        client = await nats.connect(stack.nats_url)
        message = await client.jetstream().get_msg("KEPT", 1)
        await client.close()
    assert message.data == b"still here"


async def test_a_killed_store_keeps_its_address(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stores_only(state_dir), reports.append) as stack:
        for name in ("postgres", "nats"):
            await kill_and_see_again(stack, name)
        connection = await asyncpg.connect(stack.postgres_dsn)
        assert await connection.fetchval("SELECT 1") == 1
        await connection.close()


async def test_nothing_listens_beyond_loopback(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stores_only(state_dir), reports.append) as stack:
        listening = {ip for process in family(pids_of(stack)) for ip in listened_by(process)}
    assert listening == {"127.0.0.1"}


def listened_by(process: psutil.Process) -> set[str]:
    # Workers of Postgres come and go.
    with suppress(psutil.NoSuchProcess):
        found = process.net_connections("inet")
        return {each.laddr.ip for each in found if each.status == psutil.CONN_LISTEN}
    return set()


async def test_a_second_stack_on_the_same_folder_is_refused(state_dir: Path, reports: list[str]) -> None:
    async with running_stack(stores_only(state_dir), reports.append):
        with pytest.raises(StackAlreadyRunning, match=f"already running on .*process {os.getpid()}"):
            await LocalStack(stores_only(state_dir), reports.append).start()
        assert read_stack_state(state_dir) is not None


async def test_a_terminal_that_is_gone_ends_no_supervision(state_dir: Path) -> None:
    def to_nobody(sentence: str) -> None:
        raise BrokenPipeError(sentence)

    async with running_stack(stores_only(state_dir), to_nobody) as stack:
        await kill_and_see_again(stack, "nats")


async def test_a_taken_gateway_port_is_named(state_dir: Path, reports: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        port = foreign.getsockname()[1]
        options = StackOptions(state_dir, gateway_http_address=f"127.0.0.1:{port}", modules=standin_modules())
        stack = LocalStack(options, reports.append)
        with pytest.raises(PortTaken, match=f"Port {port} is taken .* set PROCTOR_GATEWAY_HTTP_ADDRESS"):
            await stack.start()
    assert not stack.children
    assert not is_locked(state_dir)


async def test_a_service_that_dies_at_start_is_named_with_its_log(
    state_dir: Path, reports: list[str]
) -> None:
    stack = LocalStack(stack_harness(state_dir, results="--crash"), reports.append)
    failure = "results could not be started: it ended with exit code 1"
    with pytest.raises(ChildFailedToStart, match=failure) as raised:
        await stack.start()
    assert "results cannot start: it was made to crash" in str(raised.value)
    assert not pids_of(stack)
    assert not is_locked(state_dir)
