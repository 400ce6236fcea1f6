"""The address of a client behind proxies: what a trusted proxy says, and nothing that others write."""

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address

Network = IPv4Network | IPv6Network


class TrustedProxies:
    """Reads X-Forwarded-For from the right: each proxy has added whom it was called by."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks = tuple(networks)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def client_of(self, peer: str, forwarded: Iterable[str]) -> str:
        """The nearest address that is none of a trusted proxy's, in its usual form.

        `forwarded` are the values of all headers of that name. An entry that is no address ends the chain:
        the proxy before it is the client.
        """
        client = peer
        entries = [entry.strip() for value in forwarded for entry in value.split(",")]
        while entries and self._is_trusted(client):
            entry = _without_port(entries.pop())
            if entry is None:
                break
            client = entry
        return client

    def _is_trusted(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        # A socket for both families names IPv4 so.
        found = getattr(found, "ipv4_mapped", None) or found
        return any(found in network for network in self._networks)


def _without_port(entry: str) -> str | None:
    """None for what is no address, such as `unknown`."""
    for text in (entry.strip("[]"), entry.rpartition(":")[0].strip("[]")):
        try:
            return str(ip_address(text))
        except ValueError:
            continue
    return None
