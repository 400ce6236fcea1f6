"""Logs on stdout: one JSON object per line, or coloured text on a terminal."""

import logging
import sys
from typing import cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor

from services.common.traces import current_trace

# A few such fields stay below the 16 KiB at which containers split a line.
_MAX_FIELD = 1024
# Deep enough for a chain of errors. A recursion that went wild is cut.
_MAX_TRACEBACK = 32 * 1024


def configure_logs(service: str, level: str) -> None:
    """Sets up logging for the process; lines of libraries come through as well, from WARNING on."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    is_terminal = sys.stdout.isatty()
    renderer: Processor = _terminal_renderer() if is_terminal else structlog.processors.JSONRenderer()
    if not is_terminal:
        shared.append(structlog.processors.format_exc_info)
    shared.append(_capped)
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _with_trace(_logger: object, _method: str, fields: EventDict) -> EventDict:
    """The ids by which OpenTelemetry finds the lines of a trace; none where nothing is sampled."""
    if trace := current_trace():
        _, fields["trace_id"], fields["span_id"], _ = trace.split("-")
    return fields


def _capped(_logger: object, _method: str, fields: EventDict) -> EventDict:
    """Cuts long fields: some hold a text of a client, of up to 14 MiB."""
    for name, value in fields.items():
        maximum = _MAX_TRACEBACK if name == "exception" else _MAX_FIELD
        if isinstance(value, str) and len(value) > maximum:
            fields[name] = f"{value[:maximum]}… ({len(value)} characters)"
    return fields


def _terminal_renderer() -> Processor:
    # Plain tracebacks: pretty ones print local variables, and those may hold a key.
    return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)


def error_text(error: BaseException) -> str:
    """The error with its message, which some libraries leave out of its representation."""
    text, message = repr(error), str(error)
    return text if message in text else f"{type(error).__name__}: {message}"


def get_logger() -> FilteringBoundLogger:
    """The logger that every module uses."""
    return cast("FilteringBoundLogger", structlog.get_logger())
