"""A process of a service: its start and exit code, its release, its memory and the sockets it listens on."""

import ctypes
import errno
import gc
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import ClassVar, Protocol, TypeVar

import uvloop
from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict, SettingsError

from proctor.distribution import NAME
from services.common.errors import AddressTaken, CannotListen, DomainError, SharedKeyUnusable
from services.common.lifecycle import RunningService, run_service
from services.common.metrics import BUILD, serve_metrics
from services.common.shared_settings import checked_address
from services.common.structured_logs import configure_logs, get_logger
from services.common.traces import start_traces, stop_traces

# From Linux's prctl.h.
_PR_SET_DUMPABLE = 4
# From glibc's malloc.h. glibc stops raising this threshold once it is set.
_M_MMAP_THRESHOLD = -3
# A chunk of an upload: larger blocks are mapped, and unmapped when they are freed.
_LARGE_BLOCK_BYTES = 1024 * 1024
# Enough that a key cannot be guessed.
MIN_SHARED_KEY_CHARACTERS = 16
# Without any drain time a service still closes its connections.
_MIN_STOP_SECONDS = 1.0


class ProcessSettings(Protocol):
    """Settings that every service has."""

    model_config: ClassVar[SettingsConfigDict]

    @property
    def log_level(self) -> str:
        """DEBUG, INFO, WARNING or ERROR."""
        ...

    @property
    def shutdown_delay_seconds(self) -> float:
        """How long it goes on serving after its health checks fail."""
        ...

    @property
    def drain_seconds(self) -> float:
        """How long it finishes its work, after that."""
        ...

    @property
    def metrics_address(self) -> str:
        """host:port of its metrics; empty: they are not served."""
        ...

    @property
    def traces_endpoint(self) -> str:
        """URL of the collector of traces; empty: tracing is off."""
        ...

    @property
    def traces_share(self) -> float:
        """The share of the requests that are traced."""
        ...


# Objects made and not freed between two garbage collections (decision 0032). Python's 700 are those of some
# samples in flight: a worker spent a tenth of its CPU time on collections that freed nothing.
COLLECTED_OBJECTS = 10_000

S = TypeVar("S", bound=ProcessSettings)


def start_process(
    name: str,
    settings_class: type[S],
    context: Callable[[S], AbstractAsyncContextManager[RunningService]],
    *,
    metrics_labels: Callable[[S], Mapping[str, str]] = lambda _: {},
    begins_traces: bool = False,
    beyond_drain_seconds: float = 0.0,
) -> int:
    """Runs the service until a signal stops it; returns its exit code. A failed start is logged.

    `metrics_labels` are added to all metrics of the process; `begins_traces` where requests of users come in.
    A process that has not stopped `beyond_drain_seconds` after its drain time ends as it is.
    """
    settings = read_settings(name, settings_class)
    if settings is None:
        return 1
    try:
        _start_metrics(name, settings.metrics_address, metrics_labels(settings))
    except DomainError as error:
        get_logger().error("cannot start", message=error.message, reason=error.reason)
        return 1
    start_traces(name, settings.traces_endpoint, settings.traces_share, begins_traces=begins_traces)
    # Imported objects live as long as the process, so garbage collections leave them out.
    gc.freeze()
    gc.set_threshold(COLLECTED_OBJECTS)
    # `start_lean` turned them off.
    gc.enable()
    stop_seconds = settings.shutdown_delay_seconds + max(settings.drain_seconds, _MIN_STOP_SECONDS)
    running = run_service(
        name,
        lambda: context(settings),
        shutdown_delay_seconds=settings.shutdown_delay_seconds,
        on_stop=partial(_end_within, stop_seconds + beyond_drain_seconds),
    )
    try:
        return uvloop.run(running)
    finally:
        stop_traces()


def _end_within(seconds: float, exit_code: int) -> None:
    """Ends the process after that time if it still runs.

    A thread, since the event loop, or a library that swallows cancellations, may be what waits for a server
    that is gone.
    """
    ending = threading.Timer(seconds, _end_now, (seconds, exit_code))
    ending.daemon = True
    ending.start()


def _end_now(seconds: float, exit_code: int) -> None:
    get_logger().warning("gave up what did not stop in time", seconds=seconds)
    sys.stdout.flush()
    os._exit(exit_code)


def _start_metrics(name: str, address: str, labels: Mapping[str, str]) -> None:
    BUILD.labels(name, release()).set(1)
    if not address:
        return
    bound_socket(address).close()
    host, port = host_and_port(address)
    serve_metrics(host, int(port), labels)


def read_settings(name: str, settings_class: type[S]) -> S | None:
    """Sets up the logs too. None where the settings are invalid; the log has the reason."""
    try:
        settings = settings_class()
        configure_logs(name, settings.log_level)
    except (ValidationError, SettingsError, KeyError) as error:
        configure_logs(name, "INFO")
        get_logger().error(
            "settings refused", message=_sentence(error, settings_class.model_config["env_prefix"])
        )
        return None
    return settings


def usable_dispatch_proof_key(given: SecretStr) -> str:
    """The secret of scheduler and results. Raises `SharedKeyUnusable`.

    Read where a service is wired and not with its settings: a migration needs no key.
    """
    return _shared_key(given, services="Scheduler and results", variable="PROCTOR_DISPATCH_PROOF_KEY")


def usable_caller_key(given: SecretStr) -> bytes:
    """The secret by which the gateway signs its calls. Raises `SharedKeyUnusable`."""
    shared = _shared_key(given, services="Gateway, scheduler and results", variable="PROCTOR_CALLER_KEY")
    return shared.encode()


def _shared_key(given: SecretStr, **named: str) -> str:
    key = given.get_secret_value()
    if len(key) < MIN_SHARED_KEY_CHARACTERS:
        raise SharedKeyUnusable(minimum=MIN_SHARED_KEY_CHARACTERS, **named)
    return key


def _sentence(error: ValidationError | SettingsError | KeyError, prefix: str) -> str:
    """Names variables and problems, never values: one of them may be a secret."""
    if isinstance(error, KeyError):
        level = os.environ.get("PROCTOR_LOG_LEVEL")
        return f"PROCTOR_LOG_LEVEL is {level}; it can be DEBUG, INFO, WARNING or ERROR."
    if isinstance(error, SettingsError):
        return f"A variable does not have the form of its setting: {error}."
    of_variables = [one for one in error.errors() if one["loc"]]
    problems = [f"{_variable(one['loc'], prefix)}: {one['msg']}" for one in of_variables]
    if problems:
        return f"Correct these variables: {'; '.join(problems)}."
    return "; ".join(one["msg"] for one in error.errors())


def _variable(location: tuple[int | str, ...], prefix: str) -> str:
    """A shared setting is reported by its variable, any other one by its field."""
    name = ".".join(map(str, location)).upper()
    return name if name.startswith("PROCTOR_") else f"{prefix}{name}"


def release() -> str:
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "source tree"


def hide_from_own_user() -> None:
    """Other processes of the same user cannot read the environment or the memory of this one.

    Uploads are checked in such processes, by libraries with faults of their own. Those are not hidden
    themselves.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "prctl"):
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def return_freed_memory() -> None:
    """Gives large freed blocks back to the system, for a process whose memory grows and shrinks by much.

    By default glibc raises its threshold with each large block that is freed and keeps the next ones, so a
    process stays as large as its largest upload made it. Without glibc this does nothing.
    """
    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


def host_and_port(address: str) -> tuple[str, str]:
    """An empty host means this machine only. `0.0.0.0` or `[::]` means all interfaces."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "127.0.0.1", port


def is_loopback(address: str) -> bool:
    host, _ = host_and_port(address)
    return host in {"localhost", "::1"} or host.startswith("127.")


def bound_socket(address: str) -> socket.socket:
    """A socket on `host:port`, not yet listening."""
    try:
        host, port = host_and_port(checked_address(address))
    except ValueError as error:
        raise CannotListen(address=address, problem=str(error)) from error
    if not (port.isdecimal() and int(port) < 65536):
        raise CannotListen(address=address, problem="it is not host:port with a port up to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A service that restarts meets connections of its predecessor that wait for their end.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, int(port)))
    except OSError as error:
        bound.close()
        raise _refusal(address, error) from error
    return bound


def _refusal(address: str, error: OSError) -> DomainError:
    if error.errno == errno.EADDRINUSE:
        return AddressTaken(address=address)
    return CannotListen(address=address, problem=(error.strerror or str(error)).lower())
