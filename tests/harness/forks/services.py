"""Services of a stack, and the model server of tests, each forked from a process that has imported it alone.

That takes a tenth of the CPU time of a start by `python -m`, which the later release of tests/e2e/deploy and
`proctor up` in tests/e2e/runs have. This module is also the program that forks.
"""

import asyncio
import importlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from proctor.stack.options import SERVICE_MODULES
from proctor.stack.supervision.process import Program, RunningProcess, kill_group, open_log, spawn
from services.common.processes.lean_start import start_lean
from tests.harness.forks.server import NUMBER_BYTES, fork, number_of, serve, start_server

MODEL_SERVER = "tests.fakes.providers.model_server"
_OF_A_SERVICE: Mapping[tuple[str, ...], str] = {
    (sys.executable, "-P", "-m", module): module for module in SERVICE_MODULES.values()
}


def service_of(command: Sequence[str]) -> str | None:
    """The module of the service that the command of a container starts, and nothing else."""
    *python, module = command
    is_service = python[1:] == ["-P", "-m"] and module in SERVICE_MODULES.values()
    return module if is_service else None


async def start_warm(program: Program, log_path: Path) -> RunningProcess:
    """As `spawn`, which starts what is no service, or is one by another Python."""
    module = _OF_A_SERVICE.get(program.command)
    if module is None:
        return await spawn(program, log_path)
    with open_log(log_path) as log:
        return await start_forked(module, (), program.environment, (log.fileno(), log.fileno()))


async def start_forked(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], output: tuple[int, int]
) -> RunningProcess:
    """`output`: the descriptors that it writes to and reports errors to. Raises OSError."""
    answers = fork(_server(module), arguments, environment, *output)
    answers.setblocking(False)  # noqa: FBT003  # its only parameter
    try:
        content = await asyncio.get_running_loop().sock_recv(answers, NUMBER_BYTES)
    except asyncio.CancelledError:
        with answers:
            answers.setblocking(True)  # noqa: FBT003  # its only parameter
            kill_group(number_of(answers.recv(NUMBER_BYTES)))
        raise
    if not content:
        answers.close()
        raise OSError(f"{module} cannot be imported, or what has imported it was killed")
    return _ForkedProcess(number_of(content), answers)


def start_servers() -> None:
    """Of all that is forked, where several processes of tests will want it."""
    for module in (*SERVICE_MODULES.values(), MODEL_SERVER):
        _server(module)


@cache
def _server(module: str) -> socket.socket:
    """One per process of tests, or of those that are forked from it. It ends with that process."""
    return start_server(__name__, module)


class _ForkedProcess:
    def __init__(self, pid: int, answers: socket.socket) -> None:
        self.pid = pid
        self._answers = answers
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        loop.add_reader(answers, self._read_exit_code)

    @property
    def returncode(self) -> int | None:
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def send_signal(self, signal: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal)

    def _read_exit_code(self) -> None:
        content = self._answers.recv(NUMBER_BYTES)
        asyncio.get_running_loop().remove_reader(self._answers)
        self._answers.close()
        # Nothing comes where the process that waits for it was killed, and it with that one.
        self._ended.set_result(number_of(content) if content else -signal.SIGKILL)


if __name__ == "__main__":
    module, number = sys.argv[1:]
    if module == MODEL_SERVER:
        main = importlib.import_module(module).main
    else:
        start_lean(has_nats=module != SERVICE_MODULES["gateway"])
        main = importlib.import_module(f"{module}.__main__").main
    if module == SERVICE_MODULES["gateway"]:
        # Three quarters of its start, whatever its settings.
        importlib.import_module("services.gateway.server.app").served_routes()
    serve(socket.socket(fileno=int(number)))
    # As Python starts.
    for inherited in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(inherited, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())
