"""The ports of a stack: asked for and free, or chosen."""

import socket

import pytest

from proctor.stack.errors import AddressInvalid, PortTaken
from proctor.stack.supervision.addresses import (
    FREE_PORT_RANGE,
    choose_addresses,
    free_or_chosen,
    split_address,
)


def test_chosen_addresses_are_different_and_out_of_the_way_of_outgoing_connections() -> None:
    addresses = choose_addresses(20)
    assert len(set(addresses)) == 20
    assert all(split_address(address)[1] in FREE_PORT_RANGE for address in addresses)


def test_a_free_address_is_kept() -> None:
    (address,) = choose_addresses(1)
    assert free_or_chosen(address, "PROCTOR_X", "127.0.0.1:5") == address


def test_port_zero_is_replaced_by_the_chosen_one() -> None:
    assert free_or_chosen("127.0.0.1:0", "PROCTOR_X", "127.0.0.1:5") == "127.0.0.1:5"


def test_a_taken_port_names_itself_and_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"^Port {port} is taken .*set PROCTOR_X to a free address"):
            free_or_chosen(f"127.0.0.1:{port}", "PROCTOR_X", "127.0.0.1:5")


def test_a_port_without_a_host_is_on_loopback() -> None:
    assert split_address(":8080") == ("127.0.0.1", 8080)


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:99999", "8080"])
def test_what_is_no_address_is_refused_with_its_setting(address: str) -> None:
    with pytest.raises(AddressInvalid, match=f"^PROCTOR_X cannot be '{address}'") as refused:
        free_or_chosen(address, "PROCTOR_X", "127.0.0.1:5")
    assert refused.value.exit_code == 2
