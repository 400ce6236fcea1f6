"""Addresses of the parts of the stack: configured ones, which must be free, free ports, and sockets."""

import fcntl
import hashlib
import json
import os
import random
import socket
import tempfile
from collections.abc import Container, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from proctor.stack.errors import AddressInvalid, PortTaken, StateFolderUnusable
from proctor.stack.state import make_own_folder

# Below the range that the kernel hands to outgoing connections: while a server restarts, a client that
# redials its port could otherwise be given that very port as its own, and keep the server out.
FREE_PORT_RANGE = range(20_000, 32_000)
PORTS = range(65_536)
LOOPBACK = "127.0.0.1"
UNIX = "unix:"
# The kernel takes 107 bytes for the whole path of a socket.
MAX_SOCKET_FOLDER_BYTES = 80


def split_address(address: str, setting: str = "An address") -> tuple[str, int]:
    host, separator, port = address.rpartition(":")
    # The end of an IPv6 address without brackets may be a port or a part of it.
    is_host = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not (separator and is_host and port.isdecimal() and int(port) in PORTS):
        raise AddressInvalid(address=address, setting=setting)
    return host or LOOPBACK, int(port)


def socket_folder(state_dir: Path) -> Path:
    """A folder for the sockets of services. Other accounts cannot enter it, unlike a port on loopback."""
    folder = state_dir.absolute() / "run"
    if len(os.fsencode(folder)) > MAX_SOCKET_FOLDER_BYTES:
        digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"proctor-{os.geteuid()}-{digest}"
    make_own_folder(folder)
    return folder


def choose_addresses(count: int) -> list[str]:
    """Free loopback addresses, all different: each is held open until the last one is found.

    No other process of this account is given one of them before this process ends.
    """
    with ExitStack() as held, _reserved_ports() as reserved:
        for _ in range(count):
            reserved[_hold_free_port(held, reserved)] = os.getpid()
        return [f"{LOOPBACK}:{port}" for port in list(reserved)[-count:]]


@contextmanager
def _reserved_ports() -> Iterator[dict[int, int]]:
    """Ports to the living processes that chose them; what is added is stored.

    A port is free until its server listens, and again while the server restarts: no other stack may choose it
    then.
    """
    folder = Path(tempfile.gettempdir()) / f"proctor-{os.geteuid()}-ports"
    try:
        make_own_folder(folder)
    except StateFolderUnusable:
        # Another account made it. A port that is free now is the most that can be had.
        yield {}
        return
    # Without a buffer, so that a full disk is met here and not when the file is closed.
    with (folder / "ports.json").open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        reserved = _of_the_living(file.read())
        yield reserved
        # A stack starts on a full disk too; the ports are free, and only not reserved.
        with suppress(OSError):
            file.truncate(0)
            file.write(json.dumps(list(reserved.items())).encode())


def _of_the_living(stored: bytes) -> dict[int, int]:
    """Nothing where the file was cut off, as on a full disk."""
    try:
        pairs = {int(port): int(pid) for port, pid in json.loads(stored or b"[]")}
    except (TypeError, ValueError):
        return {}
    living = {pid for pid in set(pairs.values()) if _is_living(pid)}
    return {port: pid for port, pid in pairs.items() if pid in living}


def _is_living(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError):
        return False
    return True


def free_or_chosen(address: str, setting: str, chosen: str) -> str:
    """The address itself, or the chosen one for port 0. Raises PortTaken if another program listens there."""
    host, port = split_address(address, setting)
    if port == 0:
        return chosen
    with ExitStack() as held:
        try:
            _hold(held, host, port)
        except socket.gaierror as error:
            raise AddressInvalid(address=address, setting=setting) from error
        except OSError as error:
            raise PortTaken(address, setting) from error
    return address


def _hold_free_port(held: ExitStack, reserved: Container[int]) -> int:
    for port in _candidates():
        if port in reserved:
            continue
        try:
            _hold(held, LOOPBACK, port)
        except OSError:
            continue
        return port
    raise PortTaken(f"{LOOPBACK}:{FREE_PORT_RANGE}", "a smaller number of stacks")


def _candidates() -> Iterator[int]:
    return iter(random.sample(FREE_PORT_RANGE, 200))


def _hold(held: ExitStack, host: str, port: int) -> None:
    probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    # Servers set this too: an address with old connections in TIME_WAIT is free.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    probe.bind((host, port))
    probe.listen()
