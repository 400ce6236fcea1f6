"""Unknown API keys, counted by the address that they come from."""

import ipaddress

from services.common.clock import Clock
from services.common.errors import TooManyRequests
from services.gateway.auth.request_counts import RequestCounts
from services.gateway.http.errors import TooManyWrongKeys

# What one customer of a network has at least.
_IPV6_PREFIX = 64


class WrongKeys:
    """The counts of one replica: what needs no key costs the scheduler nothing.

    A known key is neither counted nor refused, since behind a proxy all callers have one address. So the
    limit bounds what guessing costs; the length of keys keeps them from being guessed.
    """

    def __init__(self, clock: Clock) -> None:
        # As many as a user may make changes.
        self._counts = RequestCounts(clock)

    def count(self, address: str) -> None:
        """Raises `TooManyWrongKeys` above the limit."""
        try:
            self._counts.count(_network(address), is_read=False)
        except TooManyRequests as error:
            limit, seconds = error.facts["limit"], error.facts["retry_after_seconds"]
            raise TooManyWrongKeys(address=address, limit=limit, retry_after_seconds=seconds) from error


def _network(address: str) -> str:
    """The address, or the network of one of IPv6: its owner has all addresses of that."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
