"""A trial that was stopped goes on with its run; one that has ended begins a new one."""

import json
from pathlib import Path

from proctor.cli.trial.unfinished_run import UnfinishedRun
from proctor.v1 import run_pb2

ORDER = run_pb2.RunOrder(suite="starter", model="openai/a", limit=3)


def test_same_order_has_the_same_id_until_its_end_was_shown(tmp_path: Path) -> None:
    assert not UnfinishedRun(tmp_path).known_request_id(ORDER)
    first = UnfinishedRun(tmp_path).request_id(ORDER)
    assert UnfinishedRun(tmp_path).known_request_id(ORDER) == first
    assert UnfinishedRun(tmp_path).request_id(ORDER) == first
    UnfinishedRun(tmp_path).forget()
    assert not UnfinishedRun(tmp_path).known_request_id(ORDER)
    assert UnfinishedRun(tmp_path).request_id(ORDER) != first


def test_another_order_is_another_run(tmp_path: Path) -> None:
    first = UnfinishedRun(tmp_path).request_id(ORDER)
    other = run_pb2.RunOrder(suite="starter", model="openai/a", limit=4)
    assert UnfinishedRun(tmp_path).request_id(other) != first


def test_another_release_orders_anew(tmp_path: Path) -> None:
    first = UnfinishedRun(tmp_path).request_id(ORDER)
    [file] = tmp_path.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "release": "0.0.0"}))
    assert UnfinishedRun(tmp_path).request_id(ORDER) != first


def test_file_that_cannot_be_read_is_written_anew(tmp_path: Path) -> None:
    UnfinishedRun(tmp_path).request_id(ORDER)
    [file] = tmp_path.iterdir()
    for broken in ("", "[]", "{", '{"request_id": 1}'):
        file.write_text(broken)
        again = UnfinishedRun(tmp_path).request_id(ORDER)
        assert UnfinishedRun(tmp_path).request_id(ORDER) == again
