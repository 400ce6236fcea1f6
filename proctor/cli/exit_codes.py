"""Exit codes, so that scripts can tell how a command ended."""

from enum import IntEnum

from proctor import client_errors
from proctor.v1 import run_pb2


class ExitCode(IntEnum):
    OK = 0
    RUN_FAILED = 1
    SOMETHING_MISSING = 1
    REFUSED = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    CANCELLED = 5
    FAULT = 6
    STACK_RUNNING = 7
    PORT_TAKEN = 8
    INTERRUPTED = 130


EXIT_CODES_HELP = (
    "Exit codes: 0 done, run completed · 1 run failed, or something is missing (doctor) · "
    "2 wrong usage or refused input · "
    "3 no gateway answers · 4 something named does not exist · 5 run cancelled · "
    "6 a fault inside · 7 a stack is already running · 8 a port is taken · "
    "130 interrupted; the run goes on."
)

_BY_STATE = {
    run_pb2.RUN_STATE_COMPLETED: ExitCode.OK,
    run_pb2.RUN_STATE_FAILED: ExitCode.RUN_FAILED,
    run_pb2.RUN_STATE_CANCELLED: ExitCode.CANCELLED,
}


def code_of_run(run: run_pb2.Run) -> ExitCode:
    """For a final run."""
    return _BY_STATE.get(run.state, ExitCode.FAULT)


def code_of_error(error: client_errors.ClientError) -> ExitCode:
    match error:
        case client_errors.NotFound():
            return ExitCode.NOT_FOUND
        case client_errors.Refused():
            return ExitCode.REFUSED
        case client_errors.Unreachable():
            return ExitCode.UNREACHABLE
    return ExitCode.FAULT
