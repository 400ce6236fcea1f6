"""What is logged within the tests' own process looks as services log to a terminal: tracebacks are plain."""

import structlog

# structlog's own print every local variable, which takes seconds where one holds all that a test has built.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)
