"""`proctor golden`: mark answers that are right, and export them as training or test data."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer

from proctor.cli.command_options import AsJson, Gateway, RunId, User
from proctor.cli.exit_codes import EXIT_CODES_HELP, ExitCode
from proctor.cli.gateway_address import find_gateway
from proctor.cli.order_options import chosen
from proctor.cli.terminal import Terminal, execute, say
from proctor.cli.written_file import STDOUT, refuse_existing, write_file, write_stdout
from proctor.client import ProctorClient
from proctor.client_errors import Refused
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import export_service_pb2 as export_pb2

_FORMS: Mapping[str, export_pb2.GoldenForm.ValueType] = {
    "training": export_pb2.GOLDEN_FORM_TRAINING,
    "test": export_pb2.GOLDEN_FORM_TEST,
}

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


def export(
    *,
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN_ID", help="Ids of 1 to 6 runs.")],
    form: Annotated[str, typer.Option(help=" | ".join(_FORMS))],
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE|-", help="Where to; - is stdout.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Write golden answers as JSON lines: chats to train on, or a data set that can be uploaded."""
    terminal = Terminal(as_json)

    async def work() -> ExitCode:
        request = export_pb2.ExportGoldenAnswersRequest(run_ids=run_ids, form=chosen(_FORMS, form, "--form"))
        if output == STDOUT and as_json:
            raise Refused("With -o - stdout is the file; --json needs another place.", "INVALID_PARAMETER")
        async with ProctorClient(find_gateway(gateway)) as client:
            pieces = _bytes(client.answers.export_golden(request))
            if output == STDOUT:
                await write_stdout(pieces)
                return ExitCode.OK
            refuse_existing(Path(output), is_forced=force)
            size = await write_file(Path(output), pieces, is_forced=force)
        if as_json:
            terminal.emit({"file": output, "bytes": size})
        else:
            say(terminal.out, f"{output}: {size:,} bytes")
        return ExitCode.OK

    execute(terminal, work)


def golden_group() -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, epilog=EXIT_CODES_HELP, help="Mark answers, and export them.")
    for command in (mark, unmark, export):
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


async def _bytes(pieces: AsyncGenerator[export_pb2.ExportGoldenAnswersResponse]) -> AsyncIterator[bytes]:
    async with aclosing(pieces):
        async for piece in pieces:
            yield piece.data
