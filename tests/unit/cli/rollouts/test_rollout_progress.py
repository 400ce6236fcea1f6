"""The line beside the spinner while rollouts go on."""

import pytest

from proctor.cli.rollouts.run import result_lines, waiting


@pytest.mark.parametrize(
    ("done", "known", "seconds", "line"),
    [
        (0, 0, 0.0, "Running tasks... 0/8 completed"),
        # What an earlier call fetched says nothing about the rate.
        (3, 3, 60.0, "Running tasks... 3/8 completed"),
        (4, 2, 60.0, "Running tasks... 4/8 completed ██████████░░░░░░░░░░ 2.0/min, 2:00 left"),
        (8, 0, 30.0, "Running tasks... 8/8 completed ████████████████████ 16.0/min, 0.0 s left"),
    ],
)
def test_the_rate_is_that_of_new_rollouts(done: int, known: int, seconds: float, line: str) -> None:
    assert waiting(done, 8, known, seconds) == line


def result(**changes: object) -> dict[str, object]:
    judged = {"run_id": "20260101__00-00-00-0", "status": "launched", "launch_rc": 0, "task_id": "a",
              "model": "openai/x", "rollout": 1, "score": 0.5, "problem": ""}  # fmt: skip
    return {**judged, **changes}


FAILED = {"status": "launch_failed", "launch_rc": 1, "score": None, "problem": "It hangs."}


def test_a_rollout_has_the_line_that_scripts_read() -> None:
    assert list(result_lines(result(), 0)) == ["✓ Task 20260101__00-00-00-0 completed (launched)"]
    assert list(result_lines(result(**FAILED), 0)) == [
        "✗ Task 20260101__00-00-00-0 completed (launch_failed)"
    ]


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_rollout_has_lines_without_marks_where_all_is_shown(verbose: int) -> None:
    assert list(result_lines(result(), verbose)) == [
        "[rollouts] finished: run_id=20260101__00-00-00-0 status=launched",
        "[rollouts] task=a model=openai/x rollout=1 score=0.50",
    ]
    assert list(result_lines(result(**FAILED), verbose)) == [
        "[rollouts] finished: run_id=20260101__00-00-00-0 status=launch_failed",
        "[rollouts] task=a model=openai/x rollout=1 score=none It hangs.",
    ]
