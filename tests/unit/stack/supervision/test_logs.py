"""The logs of the children: their ends, and how they are kept small."""

from pathlib import Path

from proctor.stack.supervision import process as child_logs


def test_the_tail_begins_where_this_start_began(tmp_path: Path) -> None:
    log = tmp_path / "nats.log"
    log.write_text("an older failure\n")
    start = child_logs.log_size(log)
    with log.open("a") as file:
        file.write("\n".join(f"line {number}" for number in range(40)))
    lines = child_logs.log_tail(log, start).splitlines()
    assert lines == [f"line {number}" for number in range(25, 40)]


def test_a_log_that_is_not_there_yet_has_no_size(tmp_path: Path) -> None:
    assert child_logs.log_size(tmp_path / "none.log") == 0


def test_rotation_keeps_what_was_written_and_the_writer_goes_on_in_the_new_file(tmp_path: Path) -> None:
    log = tmp_path / "nats.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        child_logs.rotate(log, above_bytes=99)
        writer.write(b"new")
    assert log.read_bytes() == b"new"
    assert (tmp_path / "nats.log.1").read_bytes() == b"x" * 100


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "nats.log"
    log.write_text("short")
    child_logs.rotate(log, above_bytes=99)
    assert log.read_text() == "short"
    assert not (tmp_path / "nats.log.1").exists()
