"""Fixtures of all tests: a process that hangs is ended, and its log has plain tracebacks."""

import os

import pytest
import structlog

from tests.harness.watchdog import Watchdog

# structlog's own print every local variable, which takes seconds where one holds all that a test has built.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_configure(config: pytest.Config) -> None:
    # Nothing is captured yet: descriptor 2 is the standard error of the process.
    config.pluginmanager.register(Watchdog(os.dup(2)))
