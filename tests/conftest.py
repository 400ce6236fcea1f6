"""Fixtures of all tests: a process that hangs is ended, and its log has plain tracebacks."""

import gc
import os
from collections.abc import Generator

import pytest
import structlog

from tests.harness.forks.shared_starts import start_what_is_shared
from tests.harness.forks.workers import ForkedWorkers
from tests.harness.watchdog import Watchdog

# structlog's own print every local variable, which takes seconds where one holds all that a test has built.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="run so many files at a time")


def pytest_configure(config: pytest.Config) -> None:
    # Nothing is captured yet: descriptor 2 is the standard error of the process.
    config.pluginmanager.register(Watchdog(os.dup(2)))
    if (processes := config.getoption("processes")) > 1:
        config.pluginmanager.register(ForkedWorkers(processes, before_forks=start_what_is_shared))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is imported is garbage: an eighth of the time would go to looking for some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
