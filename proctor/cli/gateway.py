"""How a command reaches its gateway: its declaration and the address.

A command is an async function of a `Session`. Its other parameters are options; a parameter that is a
dataclass is a group of them, one for each field.
"""

import contextlib
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from proctor.cli.options import API_KEY_VARIABLE, ConnectionOptions, NamedProject
from proctor.cli.render.terminal import EXIT_CODES_HELP, Terminal, execute, say
from proctor.client.calls import ApiKey
from proctor.client.errors import ClientError, Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.client.saved_login import login_file, token_for
from proctor.distribution import COMMANDS, NAME
from proctor.exit_codes import ExitCode
from proctor.stack.defaults import DEFAULT_GATEWAY_GRPC, default_state_dir
from proctor.stack.errors import StackError
from proctor.stack.state import StackState, read_stack_state

# The command's own version is shown in any case.
_VERSION_SECONDS = 2.0
# Either an async function of a session, or any function that typer takes.
Command = Callable[..., Awaitable[ExitCode | None] | None]


@dataclass(frozen=True, slots=True)
class Session:
    """A command's client of its gateway, and its terminal."""

    client: ProctorClient
    terminal: Terminal


class _GivenOnce(TyperCommand):
    """Refuses an option that is given with two values and takes one: the last would win in silence."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # of click
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        singles = [each for each in given if isinstance(each, TyperOption) and not each.multiple]
        for option in singles:
            if not (option.is_flag or option.count) and singles.count(option) > 1:
                name = max(option.opts, key=len)
                raise typer.BadParameter(f"{name} is given more than once, and takes one value.")
        return super().parse_args(ctx, args)


def add_command(
    app: typer.Typer, command: Command, name: str | None = None, panel: str | None = None
) -> None:
    app.command(name, cls=_GivenOnce, epilog=EXIT_CODES_HELP, rich_help_panel=panel)(_typer_form(command))


def command_group(
    commands: Mapping[str, Command], default: Command | None = None, about: str = ""
) -> typer.Typer:
    """`default` runs when no command of the group is named; without it the help is shown."""
    group = typer.Typer(
        epilog=EXIT_CODES_HELP,
        help=about or inspect.getdoc(default),
        callback=_alone(_typer_form(default)) if default else None,
        invoke_without_command=default is not None,
        no_args_is_help=default is None,
    )
    for name, command in commands.items():
        add_command(group, command, name)
    return group


def _typer_form(command: Command) -> Command:
    """A command with the options of its groups and of the connection side by side."""
    if not inspect.iscoroutinefunction(command):
        return command
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    groups = {each.name: each.annotation for each in own if is_dataclass(each.annotation)}

    @functools.wraps(command)
    def run(**given: Any) -> None:
        connection = _taken(ConnectionOptions, given)
        given |= {name: _taken(group, given) for name, group in groups.items()}
        terminal = Terminal(connection.as_json)

        async def connected() -> ExitCode | None:
            address = find_gateway(connection.gateway)
            async with ProctorClient(address, user=connection.user, api_key=api_key(address)) as client:
                numbered = {name: await _with_numbers(client, value) for name, value in given.items()}
                code: ExitCode | None = await command(Session(client, terminal), **numbered)
                return code

        execute(terminal, connected)

    options = [*_options(own), *_options_of(ConnectionOptions)]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # read by inspect
    return run


async def _with_numbers(client: ProctorClient, given: Any) -> Any:
    """The value of an option, or a group of them, with numbers in the place of names of projects."""
    if isinstance(given, NamedProject):
        return await client.number_of_project(given)
    if not is_dataclass(given) or isinstance(given, type):
        return given
    named = [each.name for each in fields(given) if isinstance(getattr(given, each.name), NamedProject)]
    numbers = {name: await client.number_of_project(getattr(given, name)) for name in named}
    return replace(given, **numbers) if numbers else given


def api_key(gateway: str) -> ApiKey:
    """The key of the environment, else what gives each call the token of who is signed in at this gateway."""
    key = os.environ.get(API_KEY_VARIABLE, "").strip()
    # A command may wait for hours, and a token is over after minutes.
    return key or functools.partial(token_for, gateway, login_file())


def _alone(command: Command) -> Command:
    """Does nothing where a command of the group is named."""

    @functools.wraps(command)
    def run(context: typer.Context, **given: Any) -> None:
        if not context.invoked_subcommand:
            command(**given)

    first = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    options = [first, *inspect.signature(command).parameters.values()]
    run.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]  # read by inspect
    return run


def _taken(group: Any, given: dict[str, Any]) -> Any:
    return group(**{each.name: given.pop(each.name) for each in fields(group)})


def _options(parameters: Sequence[inspect.Parameter]) -> Iterator[inspect.Parameter]:
    for each in parameters:
        if is_dataclass(each.annotation):
            yield from _options_of(each.annotation)
        else:
            # Parameters by name may follow each other with and without defaults.
            yield each.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _options_of(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(each.name, kind, default=default, annotation=hints[each.name])


def find_gateway(named: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The named address, else the local stack's, else PROCTOR_GATEWAY_GRPC_ADDRESS, else the default.

    With PROCTOR_STATE_DIR the default is not used: another stack may have that port. Raises Unreachable.
    """
    if named:
        return named
    stack = local_stack(environ)
    if stack and stack.gateway_grpc:
        return stack.gateway_grpc
    address = environ.get("PROCTOR_GATEWAY_GRPC_ADDRESS", "")
    # With port 0 the setting does not name the port that the gateway has.
    if address and not address.endswith(":0"):
        return address
    if stack is None and environ.get("PROCTOR_STATE_DIR"):
        raise Unreachable(
            f"No stack runs on {default_state_dir(environ, Path.cwd())} (PROCTOR_STATE_DIR): start one with "
            "`proctor up`, or name a gateway with --gateway (PROCTOR_GATEWAY)."
        )
    return DEFAULT_GATEWAY_GRPC


def local_stack(environ: Mapping[str, str] = os.environ) -> StackState | None:
    return read_stack_state(default_state_dir(environ, Path.cwd()))


def page_address(path: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """A page of the local stack, such as that at "runs/ID"; "" without a stack."""
    stack = local_stack(environ)
    if not stack or not stack.gateway_http:
        return ""
    return f"http://{stack.gateway_http}/{path}"


def print_page(session: Session, path: str) -> None:
    """A link that terminals make clickable, where the page is one of the local stack."""
    stack = local_stack()
    if stack and stack.gateway_grpc == session.client.address:
        # On one line, however long: a link that is folded cannot be clicked.
        session.terminal.progress.print(f"Its page: {page_address(path)}", soft_wrap=True)


def print_version(is_asked: bool) -> None:  # as typer calls it
    """This program's release, and that of a gateway that answers."""
    if not is_asked:
        return
    terminal = Terminal(is_json=False)

    async def work() -> None:
        address, release = "", ""
        with contextlib.suppress(ClientError, StackError):
            address = find_gateway(os.environ.get("PROCTOR_GATEWAY"))
            async with ProctorClient(
                address, api_key=api_key(address), timeout_seconds=_VERSION_SECONDS
            ) as client:
                release = await client.release()
        beside = f"; the gateway at {address} is {release}" if release else ""
        say(terminal.out, f"{COMMANDS[0]} {version(NAME)}{beside}")

    execute(terminal, work)
