"""A supervised child, with small programs of the system in the place of servers."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from proctor.stack.errors import ChildFailedToStart
from proctor.stack.supervision.child import ChildContext, ChildSpec, SupervisedChild
from proctor.stack.supervision.process import Program
from tests.fakes.eventually import eventually

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
        self, *command: str, probe: Callable[[], Awaitable[bool]] = is_ready, ready_seconds: float = 0.3
    ) -> SupervisedChild:
        """Children that end by themselves are given time to do it: late ones are given up instead."""
        spec = ChildSpec("child", Program(command, ENVIRONMENT), probe, ready_seconds, signal.SIGTERM, 0.3)
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
