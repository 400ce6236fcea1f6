"""An option that takes one value is refused when it is given twice."""

import pytest
from typer.testing import CliRunner

from proctor.cli.__main__ import app
from proctor.exit_codes import ExitCode


@pytest.mark.parametrize("second", ["openai/b", "openai/a"])
def test_option_of_one_value_is_refused_when_it_is_repeated(second: str) -> None:
    """The last one would win, and the model that was named first would not be evaluated."""
    done = CliRunner().invoke(app, ["run", "--suite", "glue", "--model", "openai/a", "--model", second])
    assert done.exit_code == ExitCode.REFUSED
    assert "--model is given more than once" in done.output


def test_lists_and_flags_may_be_repeated() -> None:
    repeated = ["--task", "sst2", "--task", "cola", "--json", "--json"]
    gateway = ["--gateway", "127.0.0.1:1"]
    done = CliRunner().invoke(app, ["run", "--suite", "glue", "--model", "openai/a", *repeated, *gateway])
    assert done.exit_code == ExitCode.UNREACHABLE


@pytest.mark.parametrize("twice", [["-vv"], ["-v", "-v"]])
def test_an_option_that_is_counted_may_be_repeated(twice: list[str]) -> None:
    done = CliRunner().invoke(app, ["rollouts", "run", "none.toml", *twice, "--gateway", "127.0.0.1:1"])
    assert "given more than once" not in done.output
    assert "none.toml" in done.output
