"""Work in separate processes: it never delays the event loop, and a call that takes too long is ended."""

import asyncio
import pickle
from collections.abc import Callable
from typing import TypeVar

from services.common.errors import TookTooLong
from services.common.processes.child_process import ChildProcess
from services.common.processes.commands import inherited_environment, module_command
from services.common.processes.request_loop import REQUEST
from services.common.structured_logs import get_logger

T = TypeVar("T")

MODULE = "services.common.processes.request_loop"
# A process that was given more is not kept: it would hold the memory that it needed.
KEPT_BYTES = 16 * 1024 * 1024
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}

log = get_logger()


class BoundedCalls:
    """Processes are started when they are needed, and stay."""

    def __init__(self, max_processes: int) -> None:
        self._slots = asyncio.Semaphore(max_processes)
        self._idle: list[ChildProcess] = []

    async def call(self, seconds: float, function: Callable[..., T], *arguments: object) -> T:
        """Return or raise what the function of a module does. Raises TookTooLong."""
        async with self._slots:
            request = await asyncio.to_thread(pickle.dumps, (function, arguments))
            process = self._idle.pop() if self._idle else await start_process(MODULE)
            is_in_step = False
            try:
                async with asyncio.timeout(seconds):
                    reply = await exchange(process, request)
                is_in_step = len(request) <= KEPT_BYTES
            except (OSError, EOFError, TimeoutError) as error:
                log.warning("call ended", function=function.__qualname__, seconds=seconds, error=repr(error))
                raise TookTooLong(f"{function.__qualname__} took over {seconds:g} s") from error
            finally:
                if is_in_step:
                    self._idle.append(process)
                else:
                    await process.end()
        returned = pickle.loads(reply)  # noqa: S301  # our own process, which reads nothing of others
        if isinstance(returned, BaseException):
            raise returned
        result: T = returned
        return result

    async def close(self) -> None:
        """Ends the processes. One that is at work ends with the task that waits for it."""
        while self._idle:
            await self._idle.pop().end()


async def start_process(module: str, *arguments: str) -> ChildProcess:
    """A module of the service, with its input and output in pipes."""
    environment = {**inherited_environment(), **ONE_THREAD}
    return await ChildProcess.start(module_command(module, *arguments), environment)


async def exchange(process: ChildProcess, request: bytes) -> bytes:
    """The reply to a request."""
    await process.send(REQUEST, request)
    _, reply = await process.receive()
    return reply
