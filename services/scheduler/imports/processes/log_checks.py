"""The process that reads a log. `uploads/processes/checking` starts it."""

from collections.abc import Iterable

from services.common.processes.plain_values import to_bytes
from services.scheduler.imports.check_log import CheckLog
from services.scheduler.imports.logged_run import CheckedLog, LogCheck
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.processes.serve_check import serve_check

PROGRAM = "services.scheduler.imports.processes.log_checks"


def _check(check: LogCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedLog:
    return CheckLog(objects=objects, encode=to_bytes).check(check, chunks)


if __name__ == "__main__":
    serve_check({LogCheck: _check})
