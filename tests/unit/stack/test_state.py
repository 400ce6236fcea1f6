"""The state file and the lock that makes it believable."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from proctor.stack.defaults import project_dir
from proctor.stack.errors import StackAlreadyRunning, StateFolderUnusable
from proctor.stack.pools import write_pools_file
from proctor.stack.state import (
    ChildState,
    StackLock,
    StackState,
    is_locked,
    read_stack_state,
    remove_stack_state,
    write_stack_state,
)
from proctor.stack.stop import is_supervisor, stop_stack, stop_timeout_seconds
from proctor.values.providers.pools_file import PoolsFile

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


@pytest.mark.parametrize(("reported", "seconds"), [(0.0, 120), (50.0, 120), (300.0, 320)])
def test_who_stops_a_stack_waits_longer_than_its_children_may_take(
    tmp_path: Path, reported: float, seconds: float
) -> None:
    lock = StackLock.take(tmp_path)
    write_stack_state(tmp_path, replace(STATE, stop_timeout_seconds=reported))
    assert stop_timeout_seconds(tmp_path) == seconds
    lock.release()
    assert stop_timeout_seconds(tmp_path) == 120


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


def foreign(tmp_path: Path) -> Path:
    """A folder of another user, who is root unless we are."""
    if os.geteuid() != 0:
        return Path("/")
    folder = tmp_path / "planted"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    return folder


def open_to_others(tmp_path: Path) -> Path:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def link_of_ours(tmp_path: Path) -> Path:
    """What it leads to is another user's."""
    link = tmp_path / "link"
    link.symlink_to(foreign(tmp_path))
    return link


@pytest.mark.parametrize("planted", [foreign, open_to_others, link_of_ours])
def test_a_folder_where_others_can_write_is_not_used(tmp_path: Path, planted: Callable[[Path], Path]) -> None:
    folder = planted(tmp_path)
    for use in (read_stack_state, is_locked, stop_stack, StackLock.take):
        with pytest.raises(StateFolderUnusable, match=r"another user|others may write"):
            use(folder)


def test_a_planted_folder_above_the_project_is_passed_over(tmp_path: Path) -> None:
    """Another user can make `.proctor` in /tmp, of which every project there would be a part."""
    if os.geteuid() == 0:
        (tmp_path / ".proctor").mkdir()
        os.chown(tmp_path / ".proctor", 65534, 65534)
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    assert project_dir(project / "src") == project


def test_the_folder_and_its_files_are_for_our_eyes_only(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    StackLock.take(folder).release()
    write_stack_state(folder, STATE)
    write_pools_file(folder / "pools.yaml", PoolsFile(()))
    assert folder.stat().st_mode & 0o066 == 0
    assert [path.name for path in folder.iterdir() if path.stat().st_mode & 0o077] == []


def test_a_link_instead_of_a_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for name in ("stack.json.new", "stack.json", "stack.lock"):
        (tmp_path / name).symlink_to(victim)
    write_stack_state(tmp_path, STATE)
    with pytest.raises(StateFolderUnusable):
        StackLock.take(tmp_path)
    assert victim.read_text() == "kept"


def test_only_who_holds_the_lock_is_the_supervisor(tmp_path: Path) -> None:
    lock = StackLock.take(tmp_path)
    assert is_supervisor(os.getpid(), tmp_path)
    assert not is_supervisor(os.getppid(), tmp_path)
    lock.release()
    assert not is_supervisor(os.getpid(), tmp_path)
