"""The record of a rollout fits into a message, whatever an agent wrote."""

import json
from datetime import UTC, datetime

import pytest

from services.common.sandboxes.tar_files import pack
from services.worker.rollouts.rollout_result import AgentEnd, RolloutResult, diff_of, notes_of
from services.worker.rollouts.trajectory import Trajectory
from services.worker.verification.verifier_result import VerifierResult

AT = datetime(2026, 1, 1, tzinfo=UTC)
MAX_TRAJECTORY_CHARACTERS = 500_000


def trajectory_of(trajectory: Trajectory) -> dict[str, list[dict[str, object]]]:
    rollout_result = RolloutResult(AgentEnd.SUBMITTED, VerifierResult(1.0, ""), trajectory, "", 1.0)
    kept: dict[str, list[dict[str, object]]] = json.loads(rollout_result.record_json)["trajectory"]
    return kept


@pytest.mark.timeout(20)
@pytest.mark.parametrize("letter", ["x", "ж", "語", "\x01"])
def test_a_long_trajectory_loses_the_texts_in_its_middle(letter: str) -> None:
    trajectory = Trajectory("session", "agent", "model")
    for _ in range(80):
        trajectory.add("user", letter * 9000, AT)
        trajectory.add_action("ls", letter * 9000)
    kept = trajectory_of(trajectory)
    steps = kept["steps"]
    assert len(steps) == 80
    assert len(json.dumps(kept, ensure_ascii=False)) <= MAX_TRAJECTORY_CHARACTERS
    assert len(str(steps[40]["message"])) < 300
    assert "observation" not in steps[40]
    if letter != "\x01":
        assert steps[0]["message"] == steps[-1]["message"] == letter * 9000
    # The trajectory itself keeps all.
    assert all(len(str(step["message"])) == 9000 for step in trajectory.steps)


def test_a_short_trajectory_is_whole() -> None:
    trajectory = Trajectory("session", "agent", "model")
    trajectory.add("user", "Do it.", AT)
    assert trajectory_of(trajectory)["steps"] == trajectory.steps


def numbered(lines: int) -> list[bytes]:
    return [b"%d\n" % number for number in range(lines)]


def swapped(lines: list[bytes]) -> list[bytes]:
    """Each line changes its place with the next: difflib compares each with all."""
    return [line for pair in zip(lines[1::2], lines[::2], strict=True) for line in pair]


def test_a_difference_shows_changed_new_and_removed_files() -> None:
    before = pack({"changed": b"a\nb\n", "removed": b"old\n", "same": b"s\n", "binary": b"\0"})
    after = pack({"changed": b"a\nc", "new": b"n\n", "same": b"s\n", "binary": b"\xff"})
    diff = diff_of(before, after, "/app")
    assert "--- a/changed\n+++ b/changed\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n" in diff
    assert "--- /dev/null\n+++ b/new\n" in diff
    assert "--- a/removed\n+++ /dev/null\n" in diff
    assert "Files a/binary and b/binary differ\n" in diff
    assert "same" not in diff


def test_notes_are_those_that_the_agent_wrote() -> None:
    before = pack({"notes.md": b"of the task", "repo/notes.md": b"too"})
    assert notes_of(before, before, "/app") == ""
    left = pack({"notes.md": b"of the task", "repo/notes.md": b"mine \xff"})
    assert notes_of(before, left, "/app") == "mine \ufffd"
    assert notes_of(before, pack({"artifacts/notes.md": b"a", "notes.md": b"b"}), "/app") == "a"


@pytest.mark.timeout(60)
def test_a_file_whose_comparison_would_take_minutes_is_named_only() -> None:
    lines = numbered(30_000)
    diff = diff_of(pack({"long": b"".join(lines)}), pack({"long": b"".join(swapped(lines))}), "/app")
    assert diff == "Files a/long and b/long differ\n"


def test_files_beyond_the_most_lines_are_counted_in_one_line() -> None:
    content = b"".join(numbered(4000))
    files = {f"file{number:02}": content for number in range(20)}
    diff = diff_of(pack({}), pack({**files, "a": b"\n" * 60_000, "z": b"last\n"}), "/app")
    # One file of too many lines hides none of the others.
    assert diff.count("+++ b/") == 13
    assert "+last" in diff
    assert diff.endswith("Files that differ too, and are left out of 50,000 lines: 9\n")
