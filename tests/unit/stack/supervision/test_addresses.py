"""The ports of a stack: asked for and free, or chosen."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from proctor.stack.errors import AddressInvalid, PortTaken
from proctor.stack.supervision import addresses as addresses_module
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


@pytest.fixture
def ports_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"proctor-{os.geteuid()}-ports" / "ports.json"


@pytest.mark.usefixtures("ports_file")
def test_a_chosen_port_is_not_chosen_again_before_its_server_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses_module, "FREE_PORT_RANGE", range(20_000, 20_300))
    chosen = [address for _ in range(10) for address in choose_addresses(20)]
    assert len(set(chosen)) == 200


def test_ports_of_a_process_that_has_ended_are_free_again(ports_file: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ports_file.parent.mkdir(mode=0o700)
    ports_file.write_text(json.dumps([[20_000, ended.pid], [20_001, os.getpid()]]))
    choose_addresses(1)
    assert 20_000 not in dict(json.loads(ports_file.read_text()))
    assert dict(json.loads(ports_file.read_text()))[20_001] == os.getpid()


@pytest.mark.parametrize("left", ["", "[[20000", "{}", '["x"]'])
def test_a_file_of_ports_that_was_cut_off_is_written_anew(ports_file: Path, left: str) -> None:
    ports_file.parent.mkdir(mode=0o700)
    ports_file.write_text(left)
    [address] = choose_addresses(1)
    assert json.loads(ports_file.read_text()) == [[split_address(address)[1], os.getpid()]]


def test_ports_are_chosen_where_other_accounts_may_write_the_file(ports_file: Path) -> None:
    ports_file.parent.mkdir()
    ports_file.parent.chmod(0o777)
    assert len(set(choose_addresses(3))) == 3
    assert not ports_file.exists()


def test_a_free_address_is_kept() -> None:
    (address,) = choose_addresses(1)
    assert free_or_chosen(address, "PROCTOR_X", "127.0.0.1:5") == address


def test_port_zero_is_replaced_by_the_chosen_one() -> None:
    assert free_or_chosen("127.0.0.1:0", "PROCTOR_X", "127.0.0.1:5") == "127.0.0.1:5"


def test_a_taken_port_names_itself_and_the_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken) as refused:
            free_or_chosen(f"127.0.0.1:{port}", "PROCTOR_X", "127.0.0.1:5")
        address = f"127.0.0.1:{port}"
        assert refused.value.facts == {"address": address, "setting": "PROCTOR_X", "port": str(port)}


def test_a_port_without_a_host_is_on_loopback() -> None:
    assert split_address(":8080") == ("127.0.0.1", 8080)


@pytest.mark.parametrize(
    "address", ["nonsense", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:99999", "8080", "::1:80"]
)
def test_what_is_no_address_is_refused_with_its_setting(address: str) -> None:
    with pytest.raises(AddressInvalid, match=f"^PROCTOR_X cannot be '{address}'") as refused:
        free_or_chosen(address, "PROCTOR_X", "127.0.0.1:5")
    assert refused.value.exit_code == 2
