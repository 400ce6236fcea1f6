"""`proctor`: the command line."""

import sys
from typing import Annotated

import typer

from proctor.cli.commands import CommandsByName
from proctor.cli.gateway import print_version
from proctor.cli.render.terminal import EXIT_CODES_HELP, Terminal

app = typer.Typer(cls=CommandsByName, epilog=EXIT_CODES_HELP, pretty_exceptions_enable=False)


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
        from proctor.cli.begin import show_where_to_begin  # noqa: PLC0415  # other commands do not need it

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
