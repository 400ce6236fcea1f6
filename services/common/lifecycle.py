"""Start and stop of a service, ready when what it needs answers and down in five steps, and its loops."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, NoReturn, Protocol

from services.common.errors import DomainError
from services.common.structured_logs import error_text, get_logger

# A call may swallow a cancellation, so tasks are cancelled again until they have ended. Not sooner: they
# clean up, and leases are given back within 2 s.
_CANCEL_AGAIN_SECONDS = 3.0
# What a service keeps of its drain time to close its connections; of a short one a quarter.
_CLOSING_SECONDS = 2.0

log = get_logger()


class RunningService(Protocol):
    """A service between its start and its end."""

    async def set_ready(self, is_ready: bool) -> None:  # noqa: FBT001  # a state, not an option
        """Sets the answer of health checks: whether the service takes work."""
        ...

    async def wait_failed(self) -> None:
        """Ends, or raises, when a vital task of the service has ended."""
        ...

    async def stop_taking_work(self) -> None:
        """Stops taking new work."""
        ...

    async def drain(self) -> None:
        """Finishes what it has, within its own limit."""
        ...


ServiceContext = Callable[[], AbstractAsyncContextManager[RunningService]]
# Takes the exit code of a service that begins to stop.
OnStop = Callable[[int], None]


def working_seconds(drain_seconds: float) -> float:
    """The part of the drain time in which a stopping service finishes its work; in the rest it closes."""
    return max(drain_seconds - _CLOSING_SECONDS, drain_seconds * 3 / 4)


async def run_service(
    name: str,
    context: ServiceContext,
    *,
    shutdown_delay_seconds: float = 0.0,
    on_stop: OnStop = lambda _: None,
) -> int:
    """Runs until SIGTERM or SIGINT, or until a vital task fails; gives the exit code.

    `shutdown_delay_seconds` is how long a stopping service keeps serving after it reported that it is not
    ready, so that load balancers can notice. `on_stop` is called once, when it begins to stop.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        # The signal only sets an event: the five steps below decide the order of the stop.
        loop.add_signal_handler(number, stop.set)
    has_started = asyncio.Event()

    async def live() -> int:
        async with context() as service:
            has_started.set()
            return await _serve(name, service, stop, shutdown_delay_seconds, on_stop)

    life = asyncio.create_task(live(), name=name)
    stopped = asyncio.create_task(stop.wait(), name="wait for a signal")
    try:
        await asyncio.wait((life, stopped), return_when=asyncio.FIRST_COMPLETED)
        if not life.done() and not has_started.is_set():
            on_stop(0)
            life.cancel()  # stopped while starting: a half-made start is undone
        return await life
    except asyncio.CancelledError:
        return 0
    except DomainError as error:
        log.error("cannot go on", message=error.message, reason=error.reason)
        return 1
    finally:
        stopped.cancel()


async def _serve(
    name: str, service: RunningService, stop: asyncio.Event, delay_seconds: float, on_stop: OnStop
) -> int:
    await service.set_ready(True)
    log.info("ready", name=name)
    stopped = asyncio.create_task(stop.wait(), name="wait for a signal")
    failed = asyncio.create_task(service.wait_failed(), name="watch vital tasks")
    await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    code = 0
    if failed.done():
        code = 1
        log.error("a vital task ended", name=name, exc_info=failed.exception())
    else:
        failed.cancel()
    stopped.cancel()
    on_stop(code)
    # Before anything stops: load balancers must not send to a server that refuses.
    await service.set_ready(False)
    log.info("stopping", name=name)
    await asyncio.sleep(delay_seconds)
    await service.stop_taking_work()
    await service.drain()
    return code


class BackgroundLoops:
    """The loops of a service, each a task with a name. One that ends uncancelled has failed."""

    def __init__(self, loops: Mapping[str, Coroutine[Any, Any, None]]) -> None:
        self._tasks = {name: asyncio.create_task(loop, name=name) for name, loop in loops.items()}

    async def wait_failed(self) -> NoReturn:
        """Waits until a loop has ended. Raises its error, or RuntimeError with its name where it has none."""
        ended, _ = await asyncio.wait(self._tasks.values(), return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        names = ", ".join(sorted(task.get_name() for task in ended))
        raise RuntimeError(f"a loop that should never end has ended: {names}")

    async def wait_ended(self, name: str, seconds: float) -> None:
        """Waits until the loop of this name has ended, at most `seconds`."""
        await asyncio.wait((self._tasks[name],), timeout=seconds)

    async def cancel(self) -> None:
        """Returns once all loops have ended; their errors are dropped."""
        await cancel_all(self._tasks.values())


async def cancel_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels the tasks until all have ended; their errors are dropped."""
    running = asked = {*tasks}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*asked, return_exceptions=True)


async def every(
    seconds: float | Callable[[], float], step: Callable[[], Awaitable[None]], *, name: str
) -> NoReturn:
    """Calls `step` for ever with a pause between; a failure is logged and the next call still comes."""
    while True:
        try:
            # Without it a loop whose cancellation nats-py swallowed would never end.
            with cancellation_kept():
                await step()
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("periodic step failed", step=name, error=error_text(error))
        await asyncio.sleep(seconds() if callable(seconds) else seconds)


@contextmanager
def cancellation_kept() -> Iterator[None]:
    """Raises CancelledError where the task was cancelled inside, whatever the body made of that.

    `asyncio.wait_for` of Python 3.11, which nats-py uses throughout, gives its result or its timeout when
    these come together with a cancellation.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        yield
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
