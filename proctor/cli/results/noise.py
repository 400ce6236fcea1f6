"""`proctor noise`: what the figure of a run scatters by, from its repetitions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.render.table import Cell, Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.cli.render.words import NONE, counted
from proctor.v1 import leaderboard_service_pb2


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """Which figure."""

    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A closed run.")]
    metric: Annotated[
        str, typer.Option(help="Any metric of the benchmark; default: the headline figure.")
    ] = ""


async def noise(session: Session, options: NoiseOptions) -> None:
    """Split what a figure scatters by into rows, rollouts and runs, from a run and its repetitions."""
    request = leaderboard_service_pb2.GetNoiseRequest(run_id=options.run_id, metric=options.metric)
    session.terminal.show(await session.client.leaderboard.GetNoise(request), print_noise)


def print_noise(console: Console, found: leaderboard_service_pb2.GetNoiseResponse) -> None:
    repeated = f"{counted(len(found.run_ids), 'run')} with {counted(found.rollouts, 'rollout')} of each row"
    say(console, f"{found.metric}, from {repeated}", style="bold")
    if not found.tasks:
        say(console, "The figure is no mean of rows, so its variance cannot be split.", style="yellow")
        return
    columns = (Column("task"), *numbers("rows", "by rows", "rollouts", "runs", "noise floor"))
    console.print(table(console, columns, _rows(found)))
    if not found.HasField("split"):
        say(
            console,
            "Nothing was asked twice: order the run again, or with --rollouts, to tell noise from rows.",
            style="yellow",
        )
        return
    floor = f"{found.split.noise_floor:.4f}"
    say(console, f"Two single runs of the model differ by less than {floor} in 95 % of repetitions.")
    if not found.split.HasField("run"):
        say(console, "One run does not tell how far runs are apart: order it again.", style="dim")


def _rows(found: leaderboard_service_pb2.GetNoiseResponse) -> Iterator[Sequence[Cell]]:
    for task in found.tasks:
        yield task.task, f"{task.rows:,}", *_parts(task.split if task.HasField("split") else None)
    if len(found.tasks) > 1 and found.HasField("split"):
        yield "all tasks", f"{sum(task.rows for task in found.tasks):,}", *_parts(found.split)


def _parts(split: leaderboard_service_pb2.VarianceSplit | None) -> Sequence[Cell]:
    """Standard errors of a run with one rollout."""
    if split is None:
        return (NONE,) * 4
    run = f"{split.run:.4f}" if split.HasField("run") else NONE
    return f"{split.sample:.4f}", f"{split.rollout:.4f}", run, f"{split.noise_floor:.4f}"
