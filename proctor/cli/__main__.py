"""`proctor`: the command line, assembled from its topics."""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from proctor.cli.begin import show_where_to_begin
from proctor.cli.changes import changes
from proctor.cli.datasets.commands import datasets_group
from proctor.cli.gateway import Command, add_command, print_version
from proctor.cli.keys import keys_group
from proctor.cli.mcp.command import mcp
from proctor.cli.models import models
from proctor.cli.queue import limits, queue
from proctor.cli.render.terminal import EXIT_CODES_HELP, Terminal
from proctor.cli.results.answers import results, side_by_side
from proctor.cli.results.compare import compare
from proctor.cli.results.export import export, golden_group
from proctor.cli.results.gate import gate
from proctor.cli.results.leaderboard import history, leaderboard
from proctor.cli.results.report import report
from proctor.cli.results.rescore import rescore
from proctor.cli.rollouts.commands import rollouts_group
from proctor.cli.runs.commands import cancel, pause, reclose, resume, retry, runs_group
from proctor.cli.runs.run import run, watch
from proctor.cli.stack.commands import doctor, down, nats_users, status, up
from proctor.cli.stack.install_vllm import vllm_group
from proctor.cli.stack.open_page import open_page
from proctor.cli.storage import storage
from proctor.cli.suites.commands import suites_group
from proctor.cli.trial.command import try_model

app = typer.Typer(epilog=EXIT_CODES_HELP, pretty_exceptions_enable=False)

# In the order of the help.
_BEGIN, _STACK = "Begin", "Run the stack on this machine"
_EVALUATE, _READ = "Evaluate models", "Read results"
_BRING = "Bring models, suites and data"
_OPERATE = "Operate an installation"
_PANELS: Mapping[str, Sequence[Command]] = {
    _STACK: (up, down, status),
    _EVALUATE: (run, watch, retry, cancel),
    _READ: (results, report, export, rescore),
    "Compare models": (compare, gate, side_by_side, leaderboard, history),
    _BRING: (models, storage),
    "Steer the queue": (queue, pause, resume, limits),
    _OPERATE: (changes, nats_users, reclose),
}
add_command(app, try_model, "try", panel=_BEGIN)
add_command(app, doctor, panel=_BEGIN)
add_command(app, mcp, panel=_BEGIN)
for panel, commands in _PANELS.items():
    for command in commands:
        add_command(app, command, panel=panel)
add_command(app, open_page, "open", panel=_STACK)
app.add_typer(vllm_group(), name="vllm", rich_help_panel=_BEGIN)
app.add_typer(runs_group(), name="runs", rich_help_panel=_READ)
app.add_typer(golden_group(), name="golden", rich_help_panel=_READ)
app.add_typer(rollouts_group(), name="rollouts", rich_help_panel=_EVALUATE)
app.add_typer(datasets_group(), name="datasets", rich_help_panel=_BRING)
app.add_typer(keys_group(), name="keys", rich_help_panel=_OPERATE)
app.add_typer(suites_group(), name="suites", rich_help_panel=_BRING)


@app.callback(invoke_without_command=True)
def proctor(
    context: typer.Context,
    *,
    is_version: Annotated[  # noqa: ARG001  # its callback reads it
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=print_version,
            help="Show this program's release, and that of a gateway that answers.",
        ),
    ] = False,
) -> None:
    """Evaluate language models. Without a command: where to begin."""
    if not context.invoked_subcommand:
        show_where_to_begin()


def main() -> None:
    try:
        app()
    except SystemExit as ended:
        _print_usage_error_as_json(ended.__context__)
        raise


def _print_usage_error_as_json(error: BaseException | None) -> None:
    """Typer has printed its usage errors on stderr by now. It exports no class for them."""
    message = getattr(error, "format_message", None)
    if message is not None and "--json" in sys.argv[1:]:
        Terminal(is_json=True).emit({"error": {"reason": "INVALID_PARAMETER", "message": message()}})


if __name__ == "__main__":
    main()
