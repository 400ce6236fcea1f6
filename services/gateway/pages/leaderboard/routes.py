"""The leaderboard of a benchmark: models by rank, with their intervals, and why others have no rank.

While pairs of its models are being compared, it is pushed.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, WebSocket
from starlette.responses import Response

from services.common.errors import ErrorKind
from services.gateway.auth.identity import Now
from services.gateway.backends.calls import BackendCalls, Backends, ResultsCalls
from services.gateway.pages.leaderboard.reads import (
    LeaderboardAddress,
    ranking_request,
    read_leaderboard,
    understood,
)
from services.gateway.pages.leaderboard.rows import LeaderboardRow, entry_row, ranked_rows
from services.gateway.pages.live.views import PartAddress, PushedView, push_view
from services.gateway.pages.page import PageOf
from services.gateway.pages.table_files import FileForm, Value, each_of, streamed_file

# The page shows refused filters with the reason, and has this status.
_STATUS = {None: 200, ErrorKind.INVALID: 422, ErrorKind.NOT_FOUND: 404}
_COLUMNS = (
    "rank",
    "model",
    "score",
    "ci_low",
    "ci_high",
    "n",
    "runs",
    "run_id",
    "closed_at",
    "change",
    "previous_run_id",
    "tied_with",
    "unranked_because",
)
# Not the rank: models that are tied share a range, such as "1–2".
_NUMBERS = {"score", "ci_low", "ci_high", "n", "runs", "change"}

router = APIRouter(prefix="/leaderboard", include_in_schema=False)


ParametersOf = Annotated[LeaderboardAddress, Depends()]


@router.get("")
async def show_leaderboard(
    page: PageOf, backends: BackendCalls, now: Now, parameters: ParametersOf
) -> Response:
    view, refused = await read_leaderboard(backends, parameters, now)
    response = page.show(
        "leaderboard/leaderboard", view, part="leaderboard/leaderboard_part", status=_STATUS[refused]
    )
    if page.is_part and not page.is_at(view.link()):
        response.headers["HX-Push-Url"] = view.link()
    return response


@router.websocket("/socket")
async def watch_leaderboard(socket: WebSocket, parameters: ParametersOf, build: str = "") -> None:
    """`build` is the digest of the files that the page was made with."""
    state = socket.app.state

    async def read() -> PushedView:
        backends = Backends(state.scheduler, state.results)
        view, _ = await read_leaderboard(backends, parameters, state.clock.now())
        return PushedView(view, is_over=not view.pending)

    filters = parameters.named(parameters.suite[:128])
    await push_view(socket, build, PartAddress("leaderboard/pushed", urlencode(filters)), read)


@router.get("/export.{form}")
async def export_leaderboard(results: ResultsCalls, parameters: ParametersOf, form: FileForm) -> Response:
    """The models of the page: ranked ones, then those without a rank with the reasons."""
    filters = await understood(results, parameters)
    name = filters.get("q", "").casefold()
    found = await results.leaderboard.GetLeaderboard(ranking_request(filters))
    unranked = [entry_row(entry) for entry in found.unranked]
    rows = [row for row in (*ranked_rows(found), *unranked) if name in row.model.casefold()]
    records = each_of(map(_record, rows))
    return await streamed_file("leaderboard", form, _COLUMNS, records, numbers=_NUMBERS)


def _record(row: LeaderboardRow) -> Sequence[Value]:
    figure = (row.score, row.figure.ci_low, row.figure.ci_high, row.n, row.run_count or None)
    trend = row.trend_details
    change = (trend.difference, trend.previous_job_id) if trend else (None, None)
    words = ("; ".join(row.tied_with), "; ".join(row.unranked_because))
    return (row.place, row.model, *figure, row.job_id, _text(row.completed_at), *change, *words)


def _text(at: datetime | None) -> str:
    return at.isoformat() if at else ""
