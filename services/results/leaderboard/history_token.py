"""Page tokens of a history: the moment and the run after which the next page begins."""

import uuid
from datetime import UTC, datetime, timedelta

from services.common.page_token import read_page_token, write_page_token
from services.results.checked_fields import InvalidPageToken
from services.results.leaderboard.closed_run import ClosedRun

HistoryKey = tuple[datetime, str]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# After every run: a first page begins here. The largest moment that both Python and Postgres know.
NEWEST: HistoryKey = (datetime.max.replace(tzinfo=UTC), str(uuid.UUID(int=2**128 - 1)))


def write_history_token(run: ClosedRun) -> str:
    """The token of the page after a run."""
    microseconds = (run.closed_at - EPOCH) // timedelta(microseconds=1)
    return write_page_token(microseconds, run.run_id)


def read_history_token(token: str) -> HistoryKey:
    """The key in a token, or the newest one where there is no token."""
    if not token:
        return NEWEST
    try:
        microseconds, run_id = read_page_token(token)
        return EPOCH + timedelta(microseconds=int(microseconds)), str(uuid.UUID(run_id))
    except (ValueError, OverflowError) as error:
        raise InvalidPageToken(page_token=token) from error
