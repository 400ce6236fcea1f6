"""The socket that a server will listen on, or why the system gives none."""

import errno
import socket

from services.common.errors import DomainError, ErrorKind


class PortTaken(DomainError):
    """Cannot listen on {address}: the port is taken. Stop what uses it or set another address."""

    kind = ErrorKind.CONFLICT


class CannotListen(DomainError):
    """Cannot listen on {address}: {problem}. Set another address."""

    kind = ErrorKind.CONFLICT


def bound_socket(address: str) -> socket.socket:
    """A socket on `host:port`, not yet listening; nothing before the colon means all interfaces."""
    host, _, port = address.rpartition(":")
    if not (port.isdecimal() and int(port) < 65536):
        raise CannotListen(address=address, problem="it is not host:port with a port up to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host.strip("[]"), int(port)))
    except OSError as error:
        bound.close()
        raise _refusal(address, error) from error
    return bound


def _refusal(address: str, error: OSError) -> DomainError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(address=address)
    return CannotListen(address=address, problem=(error.strerror or str(error)).lower())
