"""`proctor`: the command line put together."""

import sys
from collections.abc import Callable, Mapping, Sequence

import typer

from proctor.cli import (
    answer_commands,
    compare_command,
    datasets_commands,
    doctor_command,
    golden_commands,
    models_command,
    queue_commands,
    run_command,
    runs_commands,
    side_by_side_command,
    stack_commands,
    standings_commands,
    suites_commands,
)
from proctor.cli.exit_codes import EXIT_CODES_HELP
from proctor.cli.terminal import Terminal

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
        runs_commands.results,
        runs_commands.cancel,
        runs_commands.retry,
        answer_commands.export,
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
