"""`proctor plan-size`: how many rows and rollouts show a difference, from the spread of two stored runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.options import points
from proctor.cli.render.table import Cell, Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.cli.render.words import NONE
from proctor.cli.results.compare import runs_and_models
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import comparison_pb2, comparison_service_pb2, leaderboard_service_pb2

_RUNS = 2


@dataclass(frozen=True, slots=True)
class PlanSizeOptions:
    """The runs whose spread is taken, and what is to be shown."""

    difference: Annotated[
        str, typer.Option(metavar="POINTS", help="True difference, such as 1pt: a hundredth of a share.")
    ]
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|MODEL",
            help="Two runs or models; default: the first two models of the leaderboard of --suite.",
        ),
    ] = None
    benchmark: Annotated[
        str, typer.Option("--suite", help="Needed without runs; the id of a data set works too.")
    ] = ""
    metric: Annotated[list[str] | None, typer.Option(help="Only this metric; repeat for several.")] = None
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeat for several.")] = None
    alpha: Annotated[float, typer.Option(min=0.0, max=0.5, help="Level of the two-sided test.")] = 0.05
    power: Annotated[float, typer.Option(min=0.5, max=1.0, help="Chance that the difference is shown.")] = 0.8
    max_rollouts: Annotated[int, typer.Option(min=1, max=1024, help="Most rollouts of a row.")] = 16


async def plan_size(session: Session, options: PlanSizeOptions) -> None:
    """Plan how many rows and rollouts show a difference, from the spread of two stored runs."""
    names = options.names or await _leading_models(session.client, options.benchmark)
    if len(names) != _RUNS:
        raise Refused(f"Name two runs or two models, not {len(names)}.")
    runs, models = runs_and_models(names, options.benchmark)
    request = comparison_service_pb2.PlanSizeRequest(
        run_ids=runs,
        models=models,
        benchmark=options.benchmark,
        difference_points=points("--difference", options.difference),
        metrics=options.metric,
        tasks=options.task,
        alpha=options.alpha,
        power=options.power,
        max_rollouts=options.max_rollouts,
    )
    plan = (await session.client.comparisons.PlanSize(request)).plan
    session.terminal.show(plan, print_plan)


async def _leading_models(client: ProctorClient, benchmark: str) -> Sequence[str]:
    if not benchmark:
        raise Refused("Name two runs, or a suite: --suite glue.")
    request = leaderboard_service_pb2.GetLeaderboardRequest(benchmark=benchmark, max_entries=_RUNS)
    entries = (await client.leaderboard.GetLeaderboard(request)).entries
    if len(entries) < _RUNS:
        raise Refused(f"The leaderboard of {benchmark} has fewer than two models: name two runs.")
    return [entry.model for entry in entries]


def print_plan(console: Console, plan: comparison_pb2.SizePlan) -> None:
    for run in plan.runs:
        say(console, f"{run.model}, run {run.run_id}", style="dim")
    columns = (
        Column("task"),
        Column("metric", "whole"),
        *numbers("difference", "rows now", "rollouts", "rows"),
    )
    console.print(table(console, columns, (row for task in plan.tasks for row in _rows(task))))
    for task in plan.tasks:
        if task.HasField("sample_std"):
            name = task.difference.task or "all tasks"
            say(
                console,
                f"{name} ({task.difference.metric}): standard deviation {task.sample_std:.4f} "
                f"between rows, {task.rollout_std:.4f} between rollouts of a row",
                style="dim",
            )
    for warning in plan.warnings:
        say(console, f"Note: {warning}", style="yellow")


def _rows(task: comparison_pb2.SizedTask) -> Iterator[Sequence[Cell]]:
    named: Sequence[Cell] = (
        task.difference.task or "all tasks",
        task.difference.metric,
        f"{task.wanted:.4g}",
        f"{task.rows:,}",
    )
    if not task.sizes:
        yield (*named, NONE, NONE)
    for size in task.sizes:
        yield (*named, str(size.rollouts) if size.HasField("rollouts") else "as now", f"{size.rows:,}")
        named = ("", "", "", "")
