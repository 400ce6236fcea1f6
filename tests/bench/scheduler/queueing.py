"""200 runs ordered at once by 20 users: limits, waiting times, and what was forecast for them.

The model answers at once; some runs are paused and resumed, some cancelled meanwhile.
"""

import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

from proctor.v1 import run_pb2
from tests.e2e.harness.run_ends import ended
from tests.harness.crowded_queue import (
    HABITS,
    MAX_SAMPLES,
    Crowd,
    EndedRun,
    Forecast,
    Tally,
    Watched,
    assert_none_is_lost,
    collect_forecasts,
    ended_runs,
    looking_on,
    stir,
    submit_all,
    until_all_end,
    watch_limits,
)
from tests.harness.stack_harness import StackHarness, StackOrder, keyed_order, stack_harness

CROWD = Crowd(users_of_class=5, runs_each=10)
MAX_RUNNING = 3
MAX_PENDING = 10
# `min_run_time` is a second, so that these short runs are preempted too.
ENVIRONMENT = {"PROCTOR_SCHEDULER_MIN_RUN_TIME_SECONDS": "1"}
# How far ahead a forecast was, in seconds.
HORIZONS = ((0, 5), (5, 20), (20, 1000))


@dataclass(frozen=True)
class Measured:
    tally: Tally
    watched: Watched
    runs: Sequence[EndedRun]
    forecasts: Sequence[Forecast]
    requests: int
    seconds: float


async def leave_a_history(stack: StackHarness) -> None:
    """A run of each size, so that there is something to tell from."""
    for habit in HABITS.values():
        run = await ended(stack, await stack.submit(keyed_order(limit=habit.samples)))
        assert run.state == run_pb2.RUN_STATE_COMPLETED, run.error


async def measure(stack: StackHarness) -> Measured:
    await leave_a_history(stack)
    await stack.model_server.control(reset_stats=True)
    watched, forecasts = Watched(), list[Forecast]()
    began = time.monotonic()
    async with looking_on(watch_limits(stack, watched)):
        tally = await submit_all(stack, CROWD)
        async with looking_on(collect_forecasts(stack, forecasts)):
            await stir(stack, CROWD, tally)
            await until_all_end(stack, tally.accepted)
    seconds = time.monotonic() - began
    requests = (await stack.model_server.stats())["requests"]
    return Measured(tally, watched, await ended_runs(stack, CROWD), forecasts, requests, seconds)


def print_counts(measured: Measured) -> None:
    tally, watched, runs = measured.tally, measured.watched, measured.runs
    recorded = sum(run.recorded for run in runs)
    table = Table(title=f"{len(runs)} runs of {len(CROWD.users)} users", show_header=False)
    rows = {
        "ordered and taken": len(tally.accepted),
        "refused: too many waiting": tally.refused,
        "completed": sum(run.state == "completed" for run in runs),
        "cancelled": sum(run.state == "cancelled" for run in runs),
        "paused and resumed": f"{tally.pauses} and {tally.resumes}",
        "lost": len(set(tally.accepted) - {run.run_id for run in runs}),
        "looks at the rows": watched.looks,
        f"most that ran at a time (limit {MAX_RUNNING})": watched.most_running,
        f"most new ones of a user that waited (limit {MAX_PENDING})": watched.most_new,
        "the same with those that were preempted": watched.most_pending,
        "answers recorded": recorded,
        "asked and not recorded (cancelled in mid-run)": measured.requests - recorded,
        "seconds in all": f"{measured.seconds:.1f}",
    }
    for name, figure in rows.items():
        table.add_row(name, str(figure))
    Console(width=100).print(table)


def print_waits(runs: Sequence[EndedRun]) -> None:
    table = Table(title="Seconds from the order to the first slot")
    for column in ("users", "priority", "samples of a run", "runs", "median", "p95", "longest"):
        table.add_column(column, justify="right")
    for kind, habit in HABITS.items():
        waits = [run.waited for run in runs if run.kind == kind and run.waited is not None]
        reported = (np.percentile(waits, 50), np.percentile(waits, 95), max(waits))
        priority = run_pb2.Priority.Name(habit.priority).removeprefix("PRIORITY_").lower()
        counts = (str(habit.samples), str(len(waits)))
        table.add_row(kind, priority, *counts, *(f"{figure:.1f}" for figure in reported))
    Console(width=100).print(table)


def print_forecasts(forecasts: Sequence[Forecast], runs: Sequence[EndedRun]) -> None:
    started = {run.run_id: run.started_at for run in runs if run.started_at is not None}
    table = Table(title="Forecast start of waiting runs, against the actual one (seconds to the first slot)")
    for column in ("that came in", "forecast", "median: came", "forecast", "off by", "within the band"):
        table.add_column(column, justify="right")
    came = [(each, started[each.run_id] - each.asked_at) for each in forecasts if each.run_id in started]
    for low, high in (*HORIZONS, (0, 1000)):
        those = [(reported, after) for reported, after in came if low <= max(after, 0.0) < high]
        if not those:
            continue
        within = sum(reported.low <= after <= reported.high for reported, after in those) / len(those)
        table.add_row(
            *(f"{low} to {high}", str(len(those))),
            f"{median(after for _, after in those):.1f}",
            f"{median(forecast.seconds for forecast, _ in those):.1f}",
            f"{median(abs(forecast.seconds - after) for forecast, after in those):.1f}",
            f"{within:.0%}",
        )
    Console(width=100).print(table)


async def main() -> None:
    async with AsyncExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        order = StackOrder(rows=MAX_SAMPLES, environment=ENVIRONMENT)
        measured = await measure(await opened.enter_async_context(stack_harness(folder, order)))
    print_counts(measured)
    print_waits(measured.runs)
    print_forecasts(measured.forecasts, measured.runs)
    assert_none_is_lost(measured.runs, measured.tally)
    watched = measured.watched
    if watched.most_running > MAX_RUNNING or watched.most_new > MAX_PENDING:
        raise SystemExit(f"A limit was exceeded: {watched}")
