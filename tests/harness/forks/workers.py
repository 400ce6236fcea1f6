"""Runs units of tests in processes that are forked once everything is imported and collected.

A process of pytest-xdist imports and collects for itself, which takes longer than most units. A unit is torn
down whole, with the fixtures of its session, before its process takes the next one: no stack is idle beside
others.
"""

import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.junitxml import xml_key

from proctor.stack.supervision.launch import die_with
from tests.files_together import rank_of, unit_of

# They keep in files what failed, which the first process does.
_KEEPERS = ("lfplugin", "nfplugin", "stepwiseplugin")
_CAPTURED = pytest.StashKey[object]()


@dataclass(slots=True)
class _Worker:
    """`left` are the tests of its unit that have not ended, by their places among all; the first one runs."""

    pid: int
    connection: Connection
    left: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class ForkedWorkers:
    """A plugin. Units are handed out by rank, and in the order in which they were collected.

    `before_forks` makes what all processes share.
    """

    processes: int
    before_forks: Callable[[Sequence[pytest.Item]], None]
    _units: deque[list[int]] = field(default_factory=deque)
    _workers: dict[Connection, _Worker] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed or session.config.option.collectonly:
            return None
        if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
            # Files end in any order.
            terminal.showfspath = False
        self._units.extend(_units_of(session.items))
        self.before_forks(session.items)
        try:
            for _ in range(min(self.processes, len(self._units))):
                if self._starts_worker(session):
                    return True
            while self._workers:
                for connection in wait(list(self._workers)):
                    if self._continues(session, self._workers[connection]):  # type: ignore[index]  # none is a socket
                        return True
        finally:
            for worker in self._workers.values():
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        return True

    def _starts_worker(self, session: pytest.Session) -> bool:
        """True in the worker, once it has run all that it got."""
        ours, theirs = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        this = os.getpid()
        if pid := os.fork():
            theirs.close()
            self._workers[ours] = _Worker(pid, ours)
            return False
        # What its parent has started is the parent's.
        self._workers.clear()
        ours.close()
        die_with(this, signal.SIGKILL)
        _run(session, theirs)
        return True

    def _continues(self, session: pytest.Session, worker: _Worker) -> bool:
        """Takes one message. True in a worker that was started for one that ended in the middle of a unit."""
        try:
            message, content = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            return self._ends(session, worker)
        if message == "next":
            worker.left.extend(self._units.popleft() if self._units else ())
            # One that was killed meanwhile has ended, which is the next that it says.
            with suppress(BrokenPipeError):
                worker.connection.send(list(worker.left))
        elif message == "ended":
            worker.left.popleft()
        else:
            _log(session, content)
        return False

    def _ends(self, session: pytest.Session, worker: _Worker) -> bool:
        del self._workers[worker.connection]
        worker.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.left:
            assert code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), f"a worker ended with {code}"
            return False
        item = session.items[worker.left.popleft()]
        problem = f"its process ended with {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", problem, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
        if worker.left:
            self._units.appendleft(list(worker.left))
        return bool(self._units) and self._starts_worker(session)


def _units_of(items: Sequence[pytest.Item]) -> list[list[int]]:
    units: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        units.setdefault(unit_of(item.nodeid), []).append(place)
    return sorted(units.values(), key=lambda unit: rank_of(items[unit[0]].nodeid))


def _log(session: pytest.Session, content: dict[str, Any]) -> None:
    """Raises Failed where as many tests have failed as `--maxfail` says."""
    hook = session.config.hook
    hook.pytest_runtest_logreport(
        report=hook.pytest_report_from_serializable(config=session.config, data=content)
    )
    if session.shouldfail:
        raise session.Failed(session.shouldfail)


def _run(session: pytest.Session, connection: Connection) -> None:
    """In a worker: what is logged goes to the parent, and output is captured in files of its own."""
    plugins = session.config.pluginmanager
    if capturing := plugins.getplugin("capturemanager"):
        # Its files stay open: modules that were imported while the parent captured may hold its streams.
        session.config.stash[_CAPTURED] = capturing._global_capturing
        capturing.suspend_global_capture()
        capturing._global_capturing = None
        capturing.start_global_capturing()
        capturing.suspend_global_capture()
    for name in _KEEPERS:
        if plugin := plugins.getplugin(name):
            plugins.unregister(plugin)
    # Written by the first process, at the end of all tests.
    if report := session.config.stash.get(xml_key, None):
        report.logfile = os.devnull
    plugins.register(_Reports(session.config, connection))
    # Assertions take their colours from it, so that it is still there.
    session.config.get_terminal_writer()._file = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # written to until this process ends
    for unit in _units_from(connection):
        for place, following in zip(unit, [*unit[1:], None], strict=True):
            item = session.items[place]
            nextitem = None if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            connection.send(("ended", None))


def _units_from(connection: Connection) -> Iterator[list[int]]:
    while True:
        connection.send(("next", None))
        if not (unit := connection.recv()):
            return
        yield unit


@dataclass(frozen=True, slots=True)
class _Reports:
    config: pytest.Config
    connection: Connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        content = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", content))
