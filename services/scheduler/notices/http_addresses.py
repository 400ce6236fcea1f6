"""Where a request to a URL of users may lead: to public addresses, and to those that the operator allows.

A name is resolved once, and the connection goes to what was checked: a name that means another address a
moment later reaches nothing else.
"""

import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

Network = IPv4Network | IPv6Network
# NAT64 and 6to4 hold an IPv4 address, whatever network that is of.
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"), ip_network("2002::/16"))


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
    is_translated = address.version == 6 and any(address in network for network in _TRANSLATED)
    return address.is_global and not address.is_multicast and not is_translated


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
