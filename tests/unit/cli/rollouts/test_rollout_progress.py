"""The line beside the spinner while rollouts go on."""

import pytest

from proctor.cli.rollouts.run import waiting


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
