"""The state file and the lock that makes it believable."""

import json
from pathlib import Path

import pytest

from proctor.stack.errors import StackAlreadyRunning, StateFolderUnusable
from proctor.stack.state import (
    ChildState,
    StackLock,
    StackState,
    is_locked,
    read_stack_state,
    remove_stack_state,
    write_stack_state,
)

STATE = StackState(
    supervisor_pid=17,
    phase="running",
    gateway_http="127.0.0.1:8080",
    gateway_grpc="127.0.0.1:8081",
    postgres_dsn="postgresql://proctor:secret@127.0.0.1:5/proctor",
    nats_url="nats://127.0.0.1:6",
    environment={"PROCTOR_NATS_URL": "nats://127.0.0.1:6"},
    children={"nats": ChildState(pid=18, state="ready", restarts=2, log="/logs/nats.log")},
)


def test_what_a_running_stack_writes_is_read_back(tmp_path: Path) -> None:
    lock = StackLock.take(tmp_path)
    write_stack_state(tmp_path, STATE)
    assert read_stack_state(tmp_path) == STATE
    lock.release()


def test_the_file_of_a_stack_that_is_gone_says_nothing(tmp_path: Path) -> None:
    StackLock.take(tmp_path).release()
    write_stack_state(tmp_path, STATE)
    assert read_stack_state(tmp_path) is None


def test_no_folder_means_no_stack(tmp_path: Path) -> None:
    assert read_stack_state(tmp_path / "nowhere") is None
    assert not is_locked(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "{", "[]", json.dumps({"children": {}}), json.dumps({"pid": 1})])
def test_a_file_of_another_making_is_no_state(tmp_path: Path, content: str) -> None:
    lock = StackLock.take(tmp_path)
    (tmp_path / "stack.json").write_text(content)
    assert read_stack_state(tmp_path) is None
    lock.release()


def test_only_its_owner_reads_the_state(tmp_path: Path) -> None:
    write_stack_state(tmp_path, STATE)
    assert (tmp_path / "stack.json").stat().st_mode & 0o777 == 0o600
    remove_stack_state(tmp_path)
    remove_stack_state(tmp_path)
    assert not (tmp_path / "stack.json").exists()


def test_a_second_lock_names_the_process_that_holds_the_first(tmp_path: Path) -> None:
    lock = StackLock.take(tmp_path)
    write_stack_state(tmp_path, STATE)
    with pytest.raises(StackAlreadyRunning, match=r"\(process 17\)") as refused:
        StackLock.take(tmp_path)
    assert refused.value.exit_code == 7
    lock.release()
    StackLock.take(tmp_path).release()


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateFolderUnusable, match="cannot hold the stack's data: File exists"):
        StackLock.take(tmp_path / "file")
    with pytest.raises(StateFolderUnusable, match="cannot hold the stack's data: Not a directory"):
        is_locked(tmp_path / "file")
