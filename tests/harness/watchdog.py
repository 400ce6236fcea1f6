"""Ends a process of pytest that hangs where pytest-timeout no longer looks, after the stacks of its threads.

pytest-timeout and pytest's own fault handler stop their clocks as soon as a test has failed, and the former
fires once: what the test leaves may then hang for ever while it is torn down. Children die with the process
(see `harness/processes`), and `harness/forks/workers` reports the test, starts another worker and goes on.
"""

import faulthandler
from collections.abc import Generator
from dataclasses import dataclass

import pytest

# pytest-timeout has fired by then, and what it raised was lost in a callback of an event loop.
GRACE_SECONDS = 60.0
TEARDOWN_SECONDS = 180.0
EXIT_SECONDS = 60.0


@dataclass(frozen=True)
class Watchdog:
    """A plugin. `stderr` is a descriptor that pytest does not capture, for the stacks.

    `teardown_seconds` cover a stack of six processes, each of which ignores its signal.
    """

    stderr: int
    grace_seconds: float = GRACE_SECONDS
    teardown_seconds: float = TEARDOWN_SECONDS
    exit_seconds: float = EXIT_SECONDS

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._end_in(_limit_seconds(item) + self.grace_seconds)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Fixtures of the module and of the session too, after their last test."""
        self._end_in(self.teardown_seconds)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Python joins threads at its exit."""
        self._end_in(self.exit_seconds)

    def _end_in(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True, file=self.stderr)


def _limit_seconds(item: pytest.Item) -> float:
    """Of pytest-timeout: by the test's mark, the command line or the configuration."""
    marker = item.get_closest_marker("timeout")
    if marker is not None:
        return float(marker.args[0])
    return float(item.config.getoption("timeout") or item.config.getini("timeout"))
