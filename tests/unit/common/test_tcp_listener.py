"""A server that cannot listen says why, whichever of the two kinds it is."""

import socket
from collections.abc import Awaitable, Callable

import pytest

from services.common.grpc_server import serve_grpc
from services.common.tcp_listener import CannotListen, PortTaken, bound_socket


async def listen(address: str) -> None:
    bound_socket(address).close()


async def serve(address: str) -> None:
    await (await serve_grpc(address, [], [])).stop(0)


Listen = Callable[[str], Awaitable[None]]
both = pytest.mark.parametrize("start", [listen, serve])


@both
async def test_only_a_port_in_use_is_taken(start: Listen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortTaken):
        await start(f"127.0.0.1:{taken.getsockname()[1]}")


@both
@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("192.0.2.1:4711", "cannot assign requested address"),
        ("127.0.0.1:http-alt", "it is not host:port"),
        ("127.0.0.1:70000", "it is not host:port"),
        ("no.such.host.invalid:4711", "name"),
    ],
)
async def test_other_trouble_is_told_as_the_system_tells_it(
    start: Listen, address: str, problem: str
) -> None:
    with pytest.raises(CannotListen, match=problem) as caught:
        await start(address)
    assert caught.value.message.startswith(f"Cannot listen on {address}: ")


def test_socket_of_all_interfaces_and_of_version_6() -> None:
    with bound_socket(":0") as everywhere:
        assert everywhere.family is socket.AF_INET
    with bound_socket("[::1]:0") as loopback:
        assert loopback.family is socket.AF_INET6
