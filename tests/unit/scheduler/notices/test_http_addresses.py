"""Which addresses a URL of a user may lead to."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.notices.http_addresses import (
    AddressRefused,
    CheckedResolver,
    may_be_asked,
    networks_of,
)

PRIVATE = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "ff02::1", "2001:db8::1"),
    # The same in other forms.
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "64:ff9b:1::1"),
    *("::7f00:1", "::ffff:0:7f00:1", "fec0::1", "5f00::1"),
)


@pytest.mark.parametrize("address", PRIVATE)
def test_address_that_is_not_public_is_refused(address: str) -> None:
    assert not may_be_asked(address, ())


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "::ffff:8.8.8.8"])
def test_public_address_may_be_asked(address: str) -> None:
    assert may_be_asked(address, ())


def test_operator_allows_networks() -> None:
    allowed = networks_of("10.0.0.0/8, fd00::/8")
    assert may_be_asked("10.1.2.3", allowed)
    assert may_be_asked("::ffff:10.1.2.3", allowed)
    assert may_be_asked("fd00::1", allowed)
    assert not may_be_asked("192.168.1.1", allowed)
    with pytest.raises(ValueError, match=r"10\.0\.0\.1/8"):
        networks_of("10.0.0.1/8")


@given(st.ip_addresses())
def test_no_address_is_refused_in_one_form_and_taken_in_another(address: object) -> None:
    if "." in str(address):
        assert may_be_asked(str(address), ()) == may_be_asked(f"::ffff:{address}", ())


async def test_name_of_a_private_address_is_not_resolved() -> None:
    resolver = CheckedResolver(())
    with pytest.raises(AddressRefused, match="localhost is at an address that is not public"):
        await resolver.resolve("localhost", 80, socket.AF_UNSPEC)
    found = await CheckedResolver(networks_of("127.0.0.0/8, ::1/128")).resolve(
        "localhost", 80, socket.AF_UNSPEC
    )
    assert {each["host"] for each in found} <= {"127.0.0.1", "::1"}
    await resolver.close()
