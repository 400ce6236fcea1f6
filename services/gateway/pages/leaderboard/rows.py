"""Models of a leaderboard as rows."""

from itertools import groupby

from proctor.v1 import leaderboard_pb2
from proctor.v1.leaderboard_service_pb2 import GetLeaderboardResponse
from services.gateway.api.leaderboard import Ranked, ranked
from services.gateway.pages.rows.figure import Figure


class LeaderboardRow(Ranked):
    """A model or a baseline; `place` is a range where models share a rank, "" without a rank."""

    place: str
    figure: Figure


def ranked_rows(found: GetLeaderboardResponse) -> list[LeaderboardRow]:
    """Rows of all listed models.

    The last band has an open end where models beyond the list may share its rank.
    """
    rows: list[LeaderboardRow] = []
    for rank, band in groupby(found.entries, key=lambda entry: entry.rank):
        entries = list(band)
        last = rank + len(entries) - 1
        is_open = len(rows) + len(entries) == len(found.entries) < found.total_models
        shown = f"{rank}+" if is_open else f"{rank}–{last}" if last > rank else str(rank)
        rows += [entry_row(entry, shown) for entry in entries]
    return rows


def entry_row(entry: leaderboard_pb2.LeaderboardEntry, place: str = "") -> LeaderboardRow:
    """Models have their full names: those of several providers may be listed together."""
    return ranked(LeaderboardRow, entry, {}, place=place)
