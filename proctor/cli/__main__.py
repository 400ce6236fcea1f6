"""`proctor`: the command line put together."""

import sys
from collections.abc import Callable, Mapping, Sequence

import typer

from proctor.cli import models as models_command
from proctor.cli.datasets import commands as datasets_commands
from proctor.cli.queue import commands as queue_commands
from proctor.cli.render.terminal import EXIT_CODES_HELP, Terminal
from proctor.cli.results import compare as compare_command
from proctor.cli.results import golden as golden_commands
from proctor.cli.results import leaderboard as standings_commands
from proctor.cli.results import rescore as answer_commands
from proctor.cli.results import side_by_side as side_by_side_command
from proctor.cli.results.answers import results
from proctor.cli.results.export import export
from proctor.cli.runs import commands as runs_commands
from proctor.cli.runs import run as run_command
from proctor.cli.stack import commands as stack_commands
from proctor.cli.stack import doctor as doctor_command
from proctor.cli.suites import commands as suites_commands

app = typer.Typer(
    help="Proctor examines language models.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_RUNS = "Runs"
_WHAT_THERE_IS = "What there is"
_PANELS: Mapping[str, Sequence[Callable[..., None]]] = {
    "The local stack": (stack_commands.up, stack_commands.down, stack_commands.status, doctor_command.doctor),
    "Examine": (run_command.run, run_command.watch),
    _RUNS: (
        results,
        runs_commands.cancel,
        runs_commands.retry,
        export,
        answer_commands.rescore,
    ),
    "The queue": (
        queue_commands.queue,
        queue_commands.pause,
        queue_commands.resume,
        queue_commands.limits,
    ),
    "What runs prove": (
        compare_command.compare,
        side_by_side_command.side_by_side,
        standings_commands.leaderboard,
        standings_commands.history,
    ),
    _WHAT_THERE_IS: (models_command.models,),
}
for panel, commands in _PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel, epilog=EXIT_CODES_HELP)(command)
app.add_typer(runs_commands.runs_group(), name="runs", rich_help_panel=_RUNS)
app.add_typer(golden_commands.golden_group(), name="golden", rich_help_panel=_RUNS)
app.add_typer(datasets_commands.datasets_group(), name="datasets", rich_help_panel=_WHAT_THERE_IS)
app.add_typer(suites_commands.suites_group(), name="suites", rich_help_panel=_WHAT_THERE_IS)


def main() -> None:
    try:
        app()
    except SystemExit as ended:
        _tell_usage_as_json(ended.__context__)
        raise


def _tell_usage_as_json(error: BaseException | None) -> None:
    """What typer refuses before a command begins: told on stderr by then. It exports no class for it."""
    told = getattr(error, "format_message", None)
    if told is not None and "--json" in sys.argv[1:]:
        Terminal(is_json=True).emit({"error": {"reason": "INVALID_PARAMETER", "message": told()}})


if __name__ == "__main__":
    main()
