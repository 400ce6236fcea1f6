"""The options of `proctor limits`: numbers that no limit can be, and their names in the help."""

import pytest
from typer.testing import CliRunner

from proctor.cli.__main__ import app
from proctor.exit_codes import ExitCode

NARROW = {"COLUMNS": "80", "TERM": "dumb"}


@pytest.mark.parametrize(
    ("option", "given", "problem"),
    [
        ("--max-running-runs", "0", "0 is not from 1 to"),
        ("--max-running-runs", "1.5", "1.5 is not a whole number."),
        ("--max-stored-rows-per-user", str(2**63), "is not from 1 to"),
        ("--run-time-limit", "x", "x is not a number."),
        ("--run-time-limit", "nan", "nan is not from 0 to"),
    ],
)
def test_what_no_limit_can_be_is_refused_by_its_option(option: str, given: str, problem: str) -> None:
    ended = CliRunner().invoke(app, ["limits", option, given], env=NARROW)
    assert ended.exit_code == ExitCode.REFUSED
    output = " ".join(ended.output.replace("│", " ").split())
    assert f"Invalid value for '{option}'" in output
    assert problem in output


def test_options_differ_in_a_narrow_terminal() -> None:
    shown = CliRunner().invoke(app, ["limits", "--help"], env=NARROW).output
    names = [word for word in shown.split() if word.startswith("--")]
    assert {"--max-stored-bytes-per-user", "--max-pending-runs-per-user"} <= set(names)
    assert len(names) == len(set(names))
