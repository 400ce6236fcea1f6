"""The client behind proxies: only trusted ones are believed."""

from ipaddress import ip_network

import pytest

from services.gateway.auth.trusted_proxies import TrustedProxies

PROXIES = TrustedProxies([ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("192.0.2.7")])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        # What the client wrote itself stands before what the proxy added.
        ("10.0.0.1", ["1.1.1.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["1.1.1.1", "203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9, 192.0.2.7, 10.1.1.1"], "203.0.113.9"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("fd00::1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["2001:DB8::1"], "2001:db8::1"),
        # Nobody else is believed.
        ("203.0.113.9", ["1.1.1.1"], "203.0.113.9"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["1.1.1.1, "], "10.0.0.1"),
        # All of them are proxies: the farthest.
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("", ["1.1.1.1"], ""),
    ],
)
def test_client_is_the_nearest_that_is_no_trusted_proxy(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client_of(peer, forwarded) == client


def test_without_proxies_the_peer_is_the_client() -> None:
    assert TrustedProxies().client_of("10.0.0.1", ["1.1.1.1"]) == "10.0.0.1"
