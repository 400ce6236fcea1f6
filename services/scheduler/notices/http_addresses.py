"""Where a request to a URL of users may lead: to public addresses, and to those that the operator allows.

A name is resolved once, and the socket that is opened is checked: neither a name that means another address a
moment later nor an address that a URL has in an odd form reaches anything else.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

Network = IPv4Network | IPv6Network
# All that IANA gives out; beside it are NAT64, IPv4 in other forms, and networks of sites.
_UNICAST = ip_network("2000::/3")
# 6to4 holds an IPv4 address, whatever network that is of.
_TRANSLATED = ip_network("2002::/16")


class AddressRefused(OSError):
    """No address of a host may be asked."""


def networks_of(text: str) -> Sequence[Network]:
    """Networks separated by commas, such as "10.0.0.0/8, fd00::/8". Raises ValueError."""
    return [ip_network(part.strip()) for part in text.split(",") if part.strip()]


def may_be_asked(host: str, allowed: Sequence[Network]) -> bool:
    """Whether an address is public, or in a network that is allowed."""
    address: IPv4Address | IPv6Address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if any(address in network for network in allowed if network.version == address.version):
        return True
    if isinstance(address, IPv6Address) and (address not in _UNICAST or address in _TRANSLATED):
        return False
    return address.is_global and not address.is_multicast


class CheckedResolver(AbstractResolver):
    """Leaves out addresses that may not be asked."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises `AddressRefused` where none is left."""
        found = await self._resolver.resolve(host, port, family)
        kept = [each for each in found if may_be_asked(each["host"], self._allowed)]
        if not kept:
            raise AddressRefused(f"{host} is at an address that is not public")
        return kept

    async def close(self) -> None:
        await self._resolver.close()


class CheckedSockets:
    """Opens a socket only to an address that may be asked.

    A URL may hold one in place of a name, which no resolver sees, in forms such as digits of other scripts.
    """

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed

    def __call__(self, info: AddrInfoType) -> socket.socket:
        """Raises `AddressRefused`."""
        family, kind, protocol, _, address = info
        host = str(address[0])
        if not may_be_asked(host, self._allowed):
            raise AddressRefused(f"{host} is not public")
        return socket.socket(family, kind, protocol)
