"""Runs with their figures as rows of the list of runs, and the parameters in which they differ."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from proctor.v1 import leaderboard_pb2, run_pb2
from services.gateway.api.runs.job import ran_seconds
from services.gateway.http.presentation import optional, present
from services.gateway.pages.rows.figure import Figure
from services.gateway.pages.rows.runs import RunRow, run_shown
from services.gateway.pages.runs.repeat import parameters_of

# They change nothing that is evaluated.
_NO_DIFFERENCE = frozenset({"priority", "project_id"})
# It has a column of its own, which may be hidden.
_LIMIT = frozenset({"limit"})


class ListedRun(RunRow):
    """`figure` is empty, and `unparsed_share` None, as long as the run is not closed.

    `differs` are pairs of a parameter, in which runs of the page differ, and its value here.
    """

    note: str
    limit: int | None
    cost: float | None
    currency: str
    ran_seconds: float
    failed_share: float | None
    unparsed_share: float | None = None
    answered: int | None = None
    failed: int
    figure: Figure = Figure()
    differs: list[tuple[str, str]]


def listed_runs(
    runs: Sequence[run_pb2.Run],
    closed: Mapping[str, leaderboard_pb2.LeaderboardEntry],
    now: datetime,
    *,
    has_limit_column: bool = True,
) -> list[ListedRun]:
    """`closed` has the entries of closed runs by their ids."""
    left_out = _NO_DIFFERENCE | _LIMIT if has_limit_column else _NO_DIFFERENCE
    parameters = [dict(parameters_of(run, leaving_out=left_out)) for run in runs]
    names = dict.fromkeys(name for each in parameters for name in each)
    differing = [name for name in names if len({each.get(name) for each in parameters}) > 1]
    return [
        _listed(run, closed.get(run.run_id), now, [(name, own[name]) for name in differing if name in own])
        for run, own in zip(runs, parameters, strict=True)
    ]


def parameters_text(run: run_pb2.Run) -> str:
    """What was ordered beside model, benchmark, limit and project, as a JSON object."""
    return json.dumps(dict(parameters_of(run, leaving_out=_NO_DIFFERENCE | _LIMIT)), ensure_ascii=False)


def _listed(
    run: run_pb2.Run,
    entry: leaderboard_pb2.LeaderboardEntry | None,
    now: datetime,
    differs: list[tuple[str, str]],
) -> ListedRun:
    failed = sum(run.progress.failures.values())
    recorded = run.progress.recorded
    return run_shown(
        ListedRun,
        run,
        error=run.error.message,
        currency=run.price.currency,
        ran_seconds=ran_seconds(run, now),
        failed=failed,
        failed_share=failed / recorded if recorded else None,
        differs=differs,
        **(_figures(entry) if entry else {}),
    )


def _figures(entry: leaderboard_pb2.LeaderboardEntry) -> dict[str, object]:
    return {
        "figure": present(Figure, entry.figure),
        "unparsed_share": optional(entry, "unparsed_rate"),
        "answered": entry.answered,
    }
