"""A command talks to the gateway that was meant, never to another that happens to serve."""

from pathlib import Path

import pytest

from proctor.cli.gateway import find_gateway, page_address
from proctor.client.errors import Unreachable
from proctor.stack.state import StackLock, StackState, write_stack_state


def test_named_gateway_wins() -> None:
    assert find_gateway("there:1", {"PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:2"}) == "there:1"


def test_stack_of_the_folder_wins_over_the_environment(tmp_path: Path) -> None:
    lock = StackLock.take(tmp_path)
    write_stack_state(tmp_path, StackState(1, "running", "", "127.0.0.1:3", "", ""))
    environ = {"PROCTOR_STATE_DIR": str(tmp_path), "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:2"}
    assert find_gateway(None, environ) == "127.0.0.1:3"
    lock.release()


def test_without_a_stack_the_address_of_the_environment_counts(tmp_path: Path) -> None:
    environ = {"PROCTOR_STATE_DIR": str(tmp_path), "PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:2"}
    assert find_gateway(None, environ) == "127.0.0.1:2"


@pytest.mark.parametrize("address", [{}, {"PROCTOR_GATEWAY_GRPC_ADDRESS": "127.0.0.1:0"}])
def test_chosen_folder_without_a_stack_is_named(tmp_path: Path, address: dict[str, str]) -> None:
    with pytest.raises(Unreachable, match=f"No stack runs on {tmp_path}"):
        find_gateway(None, {"PROCTOR_STATE_DIR": str(tmp_path), **address})


def test_default_port_is_for_who_chose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".proctor").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_gateway(None, {}) == "127.0.0.1:8081"


def test_page_of_a_run_is_at_the_stack_of_the_folder(tmp_path: Path) -> None:
    environ = {"PROCTOR_STATE_DIR": str(tmp_path)}
    assert not page_address("runs/8f3c", environ)
    lock = StackLock.take(tmp_path)
    write_stack_state(tmp_path, StackState(1, "running", "127.0.0.1:4", "127.0.0.1:3", "", ""))
    assert page_address("runs/8f3c", environ) == "http://127.0.0.1:4/runs/8f3c"
    assert page_address("", environ) == "http://127.0.0.1:4/"
    lock.release()
