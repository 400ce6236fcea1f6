"""The commands that a command suggests as the next ones."""

import pytest

from proctor.cli.render.terminal import Terminal
from proctor.cli.runs.run import next_commands, print_next_commands
from proctor.v1 import run_pb2
from tests.unit.cli.test_tables import RUN, Shown

_EXPORT = f"export {RUN} --format jsonl -o answers.jsonl"


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_commands_can_be_copied_whole_at_any_width(width: int) -> None:
    shown = Shown(width)
    print_next_commands(
        Terminal(is_json=False, out=shown.console), {_EXPORT: "as a file", "runs": "all runs"}
    )
    assert len(shown.lines(_EXPORT)) == 1
    # What it is for stands beside it, or on a line of its own.
    assert all(len(line) <= width for line in shown.lines("as a file"))


def test_one_long_command_leaves_the_purposes_of_others_in_a_column() -> None:
    shown = Shown(80)
    commands = {"runs": "all runs", _EXPORT: "as a file", "models": "those that can be evaluated"}
    print_next_commands(Terminal(is_json=False, out=shown.console), commands)
    [runs], [models] = shown.lines("all runs"), shown.lines("those that")
    assert runs.index("all runs") == models.index("those that")


@pytest.mark.parametrize("completed", [0, 7])
def test_answers_are_offered_where_there_are_some(completed: int) -> None:
    shown, run = Shown(), run_pb2.Run(run_id=RUN, state=run_pb2.RUN_STATE_FAILED)
    run.order.dataset_id, run.progress.recorded = "ds_1", completed
    print_next_commands(Terminal(is_json=False, out=shown.console), next_commands(run))
    assert shown.lines(f"retry {RUN}")
    assert bool(shown.lines(f"results {RUN} --outcomes")) is bool(shown.lines(_EXPORT)) is bool(completed)
