"""`proctor golden`: mark correct answers, and export them as training or test data."""

from collections.abc import Sequence
from typing import Annotated

import typer

from proctor.cli.gateway import with_gateway
from proctor.cli.options import AsJson, Gateway, RunId, User
from proctor.cli.render.terminal import Terminal, command_group
from proctor.cli.render.words import counted
from proctor.cli.results.export import export_golden
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import answer_service_pb2 as answer_pb2

Rows = Annotated[
    list[str], typer.Argument(metavar="ROW", help="Ids of rows; with --sample numbers of samples.")
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

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        keys = _keys(rows, rollout, by_sample=by_sample)
        _report(terminal, run_id, await client.answers.mark(run_id, keys, is_golden=True))

    with_gateway(work, gateway, as_json, user)


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
    """Remove marks: all that are named, or none."""

    async def work(client: ProctorClient, terminal: Terminal) -> None:
        keys = _keys(rows, rollout, by_sample=by_sample)
        _report(terminal, run_id, await client.answers.mark(run_id, keys, is_golden=False))

    with_gateway(work, gateway, as_json, user)


def golden_group() -> typer.Typer:
    return command_group(
        {"mark": mark, "unmark": unmark, "export": export_golden}, about="Mark answers, and export them."
    )


def _report(terminal: Terminal, run_id: str, count: int) -> None:
    shown = f"Run {run_id} has {counted(count, 'golden answer')} now."
    terminal.report({"run_id": run_id, "golden_count": count}, shown)


def _keys(rows: Sequence[str], rollout: int, *, by_sample: bool) -> list[answer_pb2.AnswerKey]:
    if not by_sample:
        return [answer_pb2.AnswerKey(row_id=row, rollout=rollout - 1) for row in rows]
    for row in rows:
        if not (row.isascii() and row.isdecimal() and len(row) < len(str(2**63))):
            sentence = f"{row} is no number of a sample; without --sample it is an id."
            raise Refused(sentence, "INVALID_PARAMETER")
    return [answer_pb2.AnswerKey(sample=int(row), rollout=rollout - 1) for row in rows]
