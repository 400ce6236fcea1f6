"""A supervised child, with small programs of the system in the place of servers."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from proctor.stack.errors import ChildFailedToStart
from proctor.stack.supervision import child as supervision
from proctor.stack.supervision.child import (
    ChildContext,
    ChildSpec,
    Fault,
    FindFault,
    SupervisedChild,
    no_fault,
)
from proctor.stack.supervision.process import Program
from tests.fakes.eventually import eventually, holds

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def is_ready() -> bool:
    return True


async def is_never_ready() -> bool:
    return False


class Stack:
    """The environment of a child of the stack."""

    def __init__(self, folder: Path) -> None:
        self.log_path = folder / "child.log"
        self.reports: list[str] = []

    def child(
        self,
        *command: str,
        probe: Callable[[], Awaitable[bool]] = is_ready,
        ready_seconds: float = 0.3,
        find_fault: FindFault = no_fault,
    ) -> SupervisedChild:
        """Children that end by themselves are given time to do it: late ones are given up instead."""
        spec = ChildSpec(
            "child",
            Program(command, ENVIRONMENT),
            probe,
            ready_seconds,
            signal.SIGTERM,
            0.3,
            find_fault=find_fault,
        )
        return SupervisedChild(spec, ChildContext(self.log_path, self.reports.append, lambda: None))


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path)


async def test_a_child_that_dies_is_started_again(stack: Stack) -> None:
    child = stack.child("sleep", "60")
    await child.first_ready
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: child.pid not in (first, None) and child.ready.is_set(), "it is back")
    assert child.snapshot().restarts == 1
    assert stack.reports[0] == "child was killed by SIGKILL: starting it again"
    await child.stop()
    assert child.pid is None
    assert child.state == "stopped"


async def test_a_fault_that_a_start_mends_restarts_the_child(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "FAULT_POLL_SECONDS", 0.05)
    faults: list[Fault | None] = [Fault("is stuck", is_mended_by_restart=True)]

    async def find_fault() -> Fault | None:
        return faults[-1]

    child = stack.child("sleep", "60", find_fault=find_fault)
    await child.first_ready
    first = child.pid
    await eventually(lambda: child.pid not in (first, None) and child.ready.is_set(), "it is started again")
    faults.append(None)
    restarts = child.restarts
    await eventually(lambda: child.state == "ready", "its state is that of one in order")
    await holds(lambda: child.restarts == restarts, "one in order is not restarted", 0.5)
    assert stack.reports[:3] == [
        "child is stuck",
        "child is stopped, since another start mends this",
        "child was killed by SIGTERM: starting it again",
    ]
    await child.stop()


async def test_a_fault_that_no_start_mends_is_shown(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FAULT_POLL_SECONDS", 0.05)
    faults: list[Fault | None] = [Fault("has no room", is_mended_by_restart=False)]

    async def find_fault() -> Fault | None:
        return faults[-1]

    child = stack.child("sleep", "60", find_fault=find_fault)
    await child.first_ready
    await eventually(lambda: child.snapshot().state == "has no room", "its fault is its state")
    await holds(lambda: child.restarts == 0, "it is not restarted", 0.5)
    faults.append(None)
    await eventually(lambda: child.state == "ready", "it is in order again")
    assert stack.reports == ["child has no room", "child is in order again"]
    await child.stop()


async def test_giving_up_says_why_and_shows_the_end_of_the_log(stack: Stack) -> None:
    child = stack.child("sh", "-c", "echo no such port >&2; exit 7", probe=is_never_ready, ready_seconds=60)
    with pytest.raises(ChildFailedToStart, match="it ended with exit code 7") as failure:
        await child.first_ready
    assert str(failure.value).endswith("child.log:\nno such port")
    assert child.state == "failed"
    await child.stop()


async def test_a_child_that_never_answers_is_given_up(stack: Stack) -> None:
    child = stack.child("sleep", "60", probe=is_never_ready)
    with pytest.raises(ChildFailedToStart, match=r"it did not answer within 0\.3 s"):
        await child.first_ready
    assert child.pid is None
    await child.stop()


async def test_a_program_that_is_not_there_is_given_up(stack: Stack) -> None:
    child = stack.child("/no/such/program", probe=is_never_ready)
    with pytest.raises(ChildFailedToStart, match="/no/such/program cannot be run: No such file"):
        await child.first_ready
    await child.stop()


async def test_a_child_that_ignores_the_signal_is_killed(stack: Stack) -> None:
    child = stack.child("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done")
    await child.first_ready
    await eventually(lambda: "deaf" in stack.log_path.read_text(), "the signal is ignored by now")
    await child.stop()
    assert stack.reports == ["child did not stop within 0.3 s and was killed"]
    assert child.pid is None


async def test_a_child_gets_the_environment_it_is_given_and_no_other(stack: Stack) -> None:
    child = stack.child("sh", "-c", "env; sleep 60")
    await child.first_ready
    await eventually(lambda: "PATH=" in stack.log_path.read_text(), "it has printed its environment")
    assert "HOME=" not in stack.log_path.read_text()
    await child.stop()


async def test_stopping_one_that_waits_for_its_next_start_ends_it(stack: Stack) -> None:
    child = stack.child("false", probe=is_never_ready, ready_seconds=60)
    await eventually(lambda: child.restarts > 0, "it has died once")
    await child.stop()
    assert child.pid is None
    assert child.first_ready.cancelled()


async def test_stopping_one_whose_probe_loses_a_cancellation_ends_it(stack: Stack) -> None:
    """As `asyncio.wait_for` of Python 3.11 does where the answer comes at the same moment."""
    is_asked = asyncio.Event()

    async def lose_a_cancellation() -> bool:
        is_asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return True
        return False

    child = stack.child("sleep", "60", probe=lose_a_cancellation)
    await is_asked.wait()
    async with asyncio.timeout(10):
        await child.stop()
    assert child.pid is None
    assert child.state == "stopped"
