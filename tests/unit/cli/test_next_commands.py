"""What a command names as the next ones."""

import pytest

from proctor.cli.run_command import _print_next
from proctor.cli.terminal import Terminal
from tests.unit.cli.test_tables import RUN, Shown

_EXPORT = f"export {RUN} --format jsonl -o answers.jsonl"


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_commands_can_be_copied_whole_at_any_width(width: int) -> None:
    shown = Shown(width)
    _print_next(Terminal(is_json=False, out=shown.console), {_EXPORT: "as a file", "runs": "all runs"})
    assert len(shown.lines(_EXPORT)) == 1
    # What it is for stands beside it, or on a line of its own.
    assert all(len(line) <= width for line in shown.lines("as a file"))
