"""The local stack: Postgres, NATS and the services as children of this process, from start to stop.

Start: lock, addresses, Postgres beside NATS, then the services side by side. Stop: in turn, workers first.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from proctor.stack.options import StackOptions
from proctor.stack.pools import write_pools_file
from proctor.stack.servers.nats import prepare_nats
from proctor.stack.servers.postgres import PostgresServer, prepare_postgres
from proctor.stack.servers.postgres_home import find_postgres_home
from proctor.stack.servers.services import Wiring, child_names, object_store_of, service_children
from proctor.stack.state import StackLock, StackState, remove_stack_state, write_stack_state
from proctor.stack.supervision.addresses import UNIX, choose_addresses, free_or_chosen, socket_folder
from proctor.stack.supervision.child import ChildContext, ChildSpec, Report, StartProgram, SupervisedChild
from proctor.stack.supervision.process import ChildLogs, spawn
from proctor.values.providers.pools_file import PoolsFile

# Workers can still publish while they stop; the stores stop last.
STOP_ORDER = ("worker", "gateway", "scheduler", "results", "nats", "postgres")


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LocalStack:
    """Start it once, from the main thread; `children` fills while it starts."""

    def __init__(
        self, options: StackOptions, report: Report = print, start_program: StartProgram = spawn
    ) -> None:
        self.options = options
        self.children: dict[str, SupervisedChild] = {}
        self.postgres: PostgresServer | None = None
        self.postgres_dsn = ""
        self.nats_url = ""
        self.gateway_http = ""
        self.gateway_grpc = ""
        self.environment: dict[str, str] = {}
        self._report = report
        self._start_program = start_program
        self._phase = "starting"
        self._lock: StackLock | None = None
        self._logs: ChildLogs | None = None
        self._log_keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._lock = StackLock.take(self.options.state_dir)
        try:
            # Written at once: now that the lock is held, the file of a killed stack would be taken for ours.
            self._write_state()
            await self._start_in_order()
        except BaseException:
            # `BaseException`: a start that is cancelled has children as well.
            await self.stop()
            raise
        self._phase = "running"
        self._write_state()

    async def stop(self) -> None:
        if self._lock is None:
            return
        self._phase = "stopping"
        stopping = [await self._stop_all(role) for role in STOP_ORDER]
        if self._log_keeping is not None:
            self._log_keeping.cancel()
            await asyncio.wait([self._log_keeping])
        # Removed before the lock is released: afterwards the file may belong to the next stack.
        remove_stack_state(self.options.state_dir)
        self._lock.release()
        self._lock = None
        # Raised last, so that all children are stopped even if one does not end.
        if failures := [failure for of_role in stopping for failure in of_role]:
            raise failures[0]

    async def wait(self) -> None:
        """Returns when the stack has been stopped; raises what broke its supervision, should that happen."""
        await asyncio.gather(*(child.ended() for child in self.children.values()))

    async def _stop_all(self, role: str) -> list[BaseException]:
        """Stops the children of a role, all of them whatever fails. Returns the errors."""
        children = (child.stop() for child in self._children_of(role))
        ends = await asyncio.gather(*children, return_exceptions=True)
        return [end for end in ends if end is not None]

    def child(self, name: str) -> SupervisedChild:
        """The child by its name, or by its role where only one child has it (`worker` for `worker.local`)."""
        found = [self.children[name]] if name in self.children else self._children_of(name)
        if len(found) != 1:
            raise KeyError(f"{name}: the children of this stack are {', '.join(self.children)}")
        return found[0]

    def _children_of(self, role: str) -> list[SupervisedChild]:
        return [child for name, child in self.children.items() if name.split(".")[0] == role]

    async def _start_in_order(self) -> None:
        folder = self.options.state_dir
        self._logs = ChildLogs(folder / "logs")
        self._log_keeping = asyncio.create_task(self._logs.keep_small(), name="keep logs small")
        # All ports are chosen together, so that they differ; some of them may stay unused.
        names = child_names(self.options)
        postgres_address, nats_address, http, grpc, *metrics = choose_addresses(4 + len(names))
        gateway_http = _of_gateway(self.options, "HTTP", self.options.gateway_http_address, http)
        gateway_grpc = _of_gateway(self.options, "GRPC", self.options.gateway_grpc_address, grpc)
        sockets = socket_folder(folder)
        nats = prepare_nats(folder / "nats", nats_address, [pool.name for pool in self.options.pools])
        postgres = await self._prepare_postgres(postgres_address, self._logs.path("postgres"))
        # Postgres and NATS come first: the services would otherwise retry their connections.
        scheduler = _asked(self.options, "PROCTOR_SCHEDULER_ADDRESS", sockets / "scheduler")
        watched_by = scheduler if "scheduler" in self.options.modules else ""
        await self._start_children([postgres.child(), nats.child(watched_by)])
        pools = PoolsFile(self.options.pools, self.options.aliases)
        wiring = Wiring(
            postgres=postgres,
            nats=nats,
            scheduler=scheduler,
            results=_asked(self.options, "PROCTOR_RESULTS_ADDRESS", sockets / "results"),
            gateway_http=gateway_http,
            gateway_grpc=gateway_grpc,
            worker_health=tuple(f"{UNIX}{sockets / f'worker-{n}'}" for n in range(len(pools.pools))),
            pools_file=write_pools_file(folder / "pools.yaml", pools),
            metrics=dict(zip(names, metrics, strict=True)),
        )
        self._publish(wiring)
        await self._start_children(service_children(self.options, wiring))

    async def _prepare_postgres(self, address: str, log_path: Path) -> PostgresServer:
        home = await asyncio.to_thread(find_postgres_home, self.options.state_dir)
        if home.note:
            self._note(home.note)
        return await prepare_postgres(home, address, log_path)

    def _note(self, sentence: str) -> None:
        # The terminal may be closed. A failed write to it must not end the supervision.
        with contextlib.suppress(OSError):
            self._report(sentence)
        if self._logs is not None:
            self._logs.note(sentence)

    def _publish(self, wiring: Wiring) -> None:
        self.postgres = wiring.postgres
        self.postgres_dsn, self.nats_url = wiring.postgres.dsn, wiring.nats.url()
        self.gateway_http, self.gateway_grpc = wiring.gateway_http, wiring.gateway_grpc
        operator = {
            "PROCTOR_NATS_URL": self.nats_url,
            "PROCTOR_POSTGRES_DSN": self.postgres_dsn,
            "PROCTOR_SCHEDULER_OBJECT_STORE": object_store_of(self.options),
        }
        self.environment = {**wiring.environment("operator"), **operator}
        if data_dir := self.options.environment.get("PROCTOR_DATA_DIR"):
            self.environment["PROCTOR_DATA_DIR"] = str(Path(data_dir).absolute())
        self._write_state()

    async def _start_children(self, specs: Iterable[ChildSpec]) -> None:
        assert self._logs is not None
        servers = tuple(self._children_of("postgres") + self._children_of("nats"))
        started = []
        for spec in specs:
            needs = () if spec.name in ("postgres", "nats") else servers
            log_path = self._logs.path(spec.name)
            context = ChildContext(log_path, self._note, self._note_change, needs, self._start_program)
            self.children[spec.name] = SupervisedChild(spec, context)
            # The start waits for the first readiness only; the supervisor handles a restart after it.
            started.append(self.children[spec.name].first_ready)
        await asyncio.gather(*started)

    def _note_change(self) -> None:
        """The children go on being supervised when the disk is full: only the file is out of date."""
        try:
            self._write_state()
        except OSError as error:
            self._note(f"the state file could not be written: {error}")

    def _write_state(self) -> None:
        snapshot = StackState(
            supervisor_pid=os.getpid(),
            phase=self._phase,
            gateway_http=self.gateway_http,
            gateway_grpc=self.gateway_grpc,
            postgres_dsn=self.postgres_dsn,
            nats_url=self.nats_url,
            environment=self.environment,
            children={name: child.snapshot() for name, child in self.children.items()},
            stop_timeout_seconds=self._stop_timeout_seconds(),
        )
        write_stack_state(self.options.state_dir, snapshot)

    def _stop_timeout_seconds(self) -> float:
        """Roles stop one after the other, and the children of a role at once."""
        return sum(
            max((child.spec.stop_timeout_seconds for child in self._children_of(role)), default=0.0)
            for role in STOP_ORDER
        )


def _of_gateway(options: StackOptions, which: str, address: str, chosen: str) -> str:
    if "gateway" not in options.modules:
        return ""
    return free_or_chosen(address, f"PROCTOR_GATEWAY_{which}_ADDRESS", chosen)


def _asked(options: StackOptions, setting: str, path: Path) -> str:
    """A socket file, unless a person asked for a port."""
    address = options.environment.get(setting)
    return free_or_chosen(address, setting, f"{UNIX}{path}") if address else f"{UNIX}{path}"


@asynccontextmanager
async def running_stack(options: StackOptions, report: Report = print) -> AsyncIterator[LocalStack]:
    stack = LocalStack(options, report)
    await stack.start()
    try:
        yield stack
    finally:
        await stack.stop()


async def serve_until_stopped(options: StackOptions, report: Report = print) -> None:
    """Serves; stops a start too that is still under way; raises StackError when the stack cannot start."""
    serving = asyncio.create_task(_serve(options, report), name="serve the stack")
    stop_on_signals(serving, report)
    await asyncio.wait([serving])
    if not serving.cancelled():
        serving.result()


def stop_on_signals(task: asyncio.Task[None], report: Report = print) -> None:
    """The first signal cancels the task, which stops in order; a second one leaves at once.

    Leaving at once leaves nothing behind: the children get their death signal from the kernel.
    """
    asked: list[signal.Signals] = []

    def on_signal(number: signal.Signals) -> None:
        if asked:
            # Not `sys.exit`: that would wait for the stop which the second signal gives up on.
            os._exit(128 + number)
        asked.append(number)
        task.cancel()
        # After a SIGHUP the terminal is gone, and what prints to it fails.
        with contextlib.suppress(OSError):
            report("Stopping, workers first; a second signal leaves at once.")

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal, number)


async def _serve(options: StackOptions, report: Report) -> None:
    async with running_stack(options, report) as stack:
        report(describe(stack))
        await stack.wait()


def describe(stack: LocalStack) -> str:
    where = f"http://{stack.gateway_http}, gRPC {stack.gateway_grpc}" if stack.gateway_http else "its stores"
    return f"The stack serves {where}; logs: {stack.options.state_dir / 'logs'}; Ctrl-C stops it."
