"""`proctor`: the command line put together."""

from collections.abc import Callable, Mapping, Sequence

import typer

from proctor.cli import catalog_commands, run_command, runs_commands, stack_commands
from proctor.cli.exit_codes import EXIT_CODES_HELP

app = typer.Typer(
    help="Proctor examines language models.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

_PANELS: Mapping[str, Sequence[Callable[..., None]]] = {
    "The local stack": (stack_commands.up, stack_commands.down, stack_commands.status),
    "Examine": (run_command.run, run_command.watch),
    "Runs": (runs_commands.runs, runs_commands.results, runs_commands.cancel, runs_commands.retry),
    "What there is": (catalog_commands.suites, catalog_commands.models),
}
for panel, commands in _PANELS.items():
    for command in commands:
        app.command(rich_help_panel=panel, epilog=EXIT_CODES_HELP)(command)


def main() -> None:
    app()


if __name__ == "__main__":
    main()
