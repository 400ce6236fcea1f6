"""`proctor golden`: mark answers that are right, and export them as training or test data."""

from collections.abc import Sequence
from typing import Annotated

import typer

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway, RunId, User
from proctor.cli.render.terminal import EXIT_CODES_HELP, ExitCode, Terminal, execute, say
from proctor.cli.results.export import export_golden
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import answer_service_pb2 as answer_pb2

Rows = Annotated[
    list[str], typer.Argument(metavar="ROW", help="Ids of rows; with --sample the numbers of samples.")
]
BySample = Annotated[bool, typer.Option("--sample", help="ROW is the number that `proctor results` shows.")]
Rollout = Annotated[int, typer.Option(min=1, help="Which repetition is meant, from 1.")]


def mark(
    *,
    run_id: RunId,
    rows: Rows,
    by_sample: BySample = False,
    rollout: Rollout = 1,
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Mark answers of a run as golden: all that are named, or none."""
    _change(run_id, (rows, by_sample, rollout), (gateway, user), is_golden=True, as_json=as_json)


def unmark(
    *,
    run_id: RunId,
    rows: Rows,
    by_sample: BySample = False,
    rollout: Rollout = 1,
    gateway: Gateway = None,
    user: User = "",
    as_json: AsJson = False,
) -> None:
    """Take marks off: all that are named, or none."""
    _change(run_id, (rows, by_sample, rollout), (gateway, user), is_golden=False, as_json=as_json)


def golden_group() -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, epilog=EXIT_CODES_HELP, help="Mark answers, and export them.")
    for command in (mark, unmark, export_golden):
        group.command(epilog=EXIT_CODES_HELP)(command)
    return group


def _change(
    run_id: str,
    named: tuple[Sequence[str], bool, int],
    asked_of: tuple[str | None, str],
    *,
    is_golden: bool,
    as_json: bool,
) -> None:
    terminal = Terminal(as_json)
    gateway, user = asked_of

    async def work() -> ExitCode:
        keys = _keys(*named)
        async with ProctorClient(find_gateway(gateway), user=user) as client:
            count = await client.answers.mark(run_id, keys, is_golden=is_golden)
        if as_json:
            terminal.emit({"run_id": run_id, "golden_count": count})
        else:
            answers = "1 golden answer" if count == 1 else f"{count:,} golden answers"
            say(terminal.out, f"Run {run_id} has {answers} now.")
        return ExitCode.OK

    execute(terminal, work)


def _keys(rows: Sequence[str], by_sample: bool, rollout: int) -> list[answer_pb2.AnswerKey]:
    if not by_sample:
        return [answer_pb2.AnswerKey(row_id=row, rollout=rollout - 1) for row in rows]
    for row in rows:
        if not (row.isascii() and row.isdecimal() and len(row) < len(str(2**63))):
            raise Refused(
                f"{row} is no number of a sample; without --sample it is an id.", "INVALID_PARAMETER"
            )
    return [answer_pb2.AnswerKey(sample=int(row), rollout=rollout - 1) for row in rows]
