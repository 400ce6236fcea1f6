"""The start of every process: settings read once, logs set up, the service run; its exit code."""

import gc
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

import uvloop
from pydantic import ValidationError

from services.common.lifecycle import RunningService, run_service
from services.common.structured_logs import configure_logs, get_logger


class ProcessSettings(Protocol):
    """What every service's settings have."""

    @property
    def log_level(self) -> str:
        """DEBUG, INFO, WARNING or ERROR."""
        ...


S = TypeVar("S", bound=ProcessSettings)


def start_process(
    name: str,
    read_settings: Callable[[], S],
    context: Callable[[S], AbstractAsyncContextManager[RunningService]],
) -> int:
    """Runs the service until it is told to stop; 1 when it cannot start, with one sentence in the log."""
    try:
        settings = read_settings()
        configure_logs(name, settings.log_level)
    except (ValidationError, KeyError) as error:
        configure_logs(name, "INFO")
        get_logger().error("settings refused", message=_sentence(error))
        return 1
    # What was imported lives as long as the process: collections need not walk it again and again.
    gc.freeze()
    return uvloop.run(run_service(name, lambda: context(settings)))


def _sentence(error: ValidationError | KeyError) -> str:
    """Names variables and problems, never values: one of them may be a secret."""
    if isinstance(error, KeyError):
        level = os.environ.get("PROCTOR_LOG_LEVEL")
        return f"PROCTOR_LOG_LEVEL is {level}; it can be DEBUG, INFO, WARNING or ERROR."
    problems = [f"PROCTOR_{'.'.join(map(str, one['loc'])).upper()}: {one['msg']}" for one in error.errors()]
    return f"Correct these variables: {'; '.join(problems)}."
