"""The supervisor of the local stack as a program: killed, stopped from outside, run as another user."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from proctor.stack import state
from proctor.stack.local_stack import running_stack
from proctor.stack.options import StackOptions
from proctor.stack.servers import postgres_home
from proctor.stack.state import StackState, read_stack_state
from proctor.stack.stop import stop_stack
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.fakes.thorough_cases import first_cases
from tests.harness.processes import bound
from tests.harness.servers import give_cluster

REPOSITORY = Path(__file__).parents[3]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")


@pytest.fixture
async def state_dir() -> AsyncIterator[Path]:
    """With a cluster of Postgres; initdb takes a second of CPU."""
    with temporary_state_dir() as folder:
        folder.mkdir()
        await give_cluster(folder, folder.with_name("postgres.log"))
        yield folder


Start = Callable[..., "Supervisor"]


@pytest.fixture
def start(state_dir: Path) -> Iterator[Start]:
    """Starts supervisors, and kills those that a failed test leaves: their children die with them."""
    started: list[Supervisor] = []

    def start_one(prefix: Sequence[str] = ()) -> Supervisor:
        started.append(Supervisor(state_dir, prefix))
        return started[-1]

    yield start_one
    for supervisor in started:
        supervisor.process.kill()
        supervisor.process.wait(10)


class Supervisor:
    """`python -m tests.fakes.stack.stack_program`, and what it prints."""

    def __init__(self, state_dir: Path, prefix: Sequence[str] = ()) -> None:
        self.state_dir = state_dir
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PROCTOR_STATE_DIR": str(state_dir),
            "PROCTOR_GATEWAY_HTTP_ADDRESS": "127.0.0.1:0",
            "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:0",
        }
        self.output_path = state_dir.parent / "output"
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                bound(*prefix, sys.executable, "-m", "tests.fakes.stack.stack_program"),
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    async def until_running(self) -> StackState:
        await eventually(self._is_running_or_ended, "the stack runs", 60)
        found = self._state()
        assert found is not None, self.output_path.read_text()
        return found

    def _state(self) -> StackState | None:
        """From the file alone where the supervisor is another user, whom we would not believe otherwise."""
        is_own = not self.state_dir.exists() or self.state_dir.stat().st_uid == os.geteuid()
        return read_stack_state(self.state_dir) if is_own else state._read_file(self.state_dir)

    async def until_ended(self) -> int:
        await eventually(lambda: self.process.poll() is not None, "the supervisor has ended", 60)
        return int(self.process.returncode)

    def _is_running_or_ended(self) -> bool:
        found = self._state()
        return self.process.poll() is not None or (found is not None and found.phase == "running")


def family(state: StackState) -> list[psutil.Process]:
    parents = [psutil.Process(child.pid) for child in state.children.values() if child.pid is not None]
    assert len(parents) == len(state.children)
    return parents + [child for parent in parents for child in parent.children(recursive=True)]


def none_alive(processes: list[psutil.Process]) -> bool:
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


async def test_nothing_survives_a_supervisor_that_is_killed(state_dir: Path, start: Start) -> None:
    supervisor = start()
    processes = family(await supervisor.until_running())
    supervisor.process.kill()
    await eventually(lambda: none_alive(processes), "every child and grandchild is gone")
    await supervisor.until_ended()
    assert read_stack_state(state_dir) is None, "the file it left says nothing"

    successor = start()
    await successor.until_running()
    assert stop_stack(state_dir)
    assert await successor.until_ended() == 0


@first_cases(1, "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_the_stack_in_order(start: Start, number: signal.Signals) -> None:
    supervisor = start()
    processes = family(await supervisor.until_running())
    supervisor.process.send_signal(number)
    assert await supervisor.until_ended() == 0
    assert none_alive(processes)
    assert "killed" not in supervisor.output_path.read_text()


async def test_a_second_signal_leaves_at_once_and_leaves_nothing(start: Start) -> None:
    supervisor = start()
    processes = family(await supervisor.until_running())
    supervisor.process.send_signal(signal.SIGINT)
    supervisor.process.send_signal(signal.SIGTERM)
    assert await supervisor.until_ended() in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    await eventually(lambda: none_alive(processes), "every child and grandchild is gone")


async def test_a_signal_during_the_start_leaves_nothing(start: Start) -> None:
    supervisor = start()
    await eventually(lambda: bool(children_of(supervisor)), "a first child is there")
    processes = children_of(supervisor)
    supervisor.process.terminate()
    assert await supervisor.until_ended() == 0
    assert none_alive(processes)


def children_of(supervisor: Supervisor) -> list[psutil.Process]:
    return psutil.Process(supervisor.process.pid).children(recursive=True)


async def test_a_second_supervisor_ends_with_its_own_exit_code(state_dir: Path, start: Start) -> None:
    first = start()
    state = await first.until_running()
    second = start()
    assert await second.until_ended() == 7
    assert (
        f"already running on {state_dir} (process {state.supervisor_pid})" in second.output_path.read_text()
    )
    assert stop_stack(state_dir)
    assert await first.until_ended() == 0


def test_stopping_where_nothing_runs_says_so(state_dir: Path) -> None:
    assert not stop_stack(state_dir)


@as_root
async def test_a_normal_user_runs_the_stack_with_everything_his_own(state_dir: Path, start: Start) -> None:
    # He makes a cluster himself.
    shutil.rmtree(state_dir)
    state_dir.parent.chmod(0o777)
    supervisor = start(prefix=become_nobody())
    processes = family(await supervisor.until_running())
    assert {process.username() for process in processes} == {"nobody"}
    assert (state_dir / "postgres" / "data").stat().st_uid == pwd.getpwnam("nobody").pw_uid
    supervisor.process.terminate()
    assert await supervisor.until_ended() == 0
    assert none_alive(processes)


def become_nobody() -> tuple[str, ...]:
    """Where Python itself is installed in root's home, other users may not read it."""
    line = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    if postgres_home.reachable_by("nobody", Path(sys.executable).resolve().parent):
        return line
    return (*line, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


@as_root
async def test_root_keeps_postgres_elsewhere_when_the_state_is_private(state_dir: Path) -> None:
    state_dir.parent.chmod(0o700)
    reports: list[str] = []
    async with running_stack(StackOptions(state_dir, modules={}), reports.append) as stack:
        postgres = psutil.Process(stack.child("postgres").pid)
        assert postgres.username() == "nobody"
        data = Path(postgres.cmdline()[2])
    assert state_dir.parent.stat().st_mode & 0o777 == 0o700, "no permission was changed"
    assert reports == [f"Postgres runs as nobody, who cannot reach {state_dir}: its data is in {data.parent}"]
    shutil.rmtree(data.parent)
