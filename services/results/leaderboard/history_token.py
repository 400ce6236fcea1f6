"""Page tokens of a history: the moment and the run after which the next page begins."""

import base64
import binascii
import uuid
from datetime import UTC, datetime, timedelta

from services.results.leaderboard.closed_run import ClosedRun
from services.results.page_token import InvalidPageToken

HistoryKey = tuple[datetime, str]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# After every run: a first page begins here. The largest moment that both Python and Postgres know.
NEWEST: HistoryKey = (datetime.max.replace(tzinfo=UTC), str(uuid.UUID(int=2**128 - 1)))


def write_history_token(run: ClosedRun) -> str:
    """The token of the page after a run."""
    microseconds = (run.closed_at - EPOCH) // timedelta(microseconds=1)
    return base64.urlsafe_b64encode(f"{microseconds}.{run.run_id}".encode()).decode().rstrip("=")


def read_history_token(token: str) -> HistoryKey:
    """The key in a token, or the newest one where there is no token."""
    if not token:
        return NEWEST
    try:
        padded = token + "=" * (-len(token) % 4)
        microseconds, run_id = base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(".")
        return EPOCH + timedelta(microseconds=int(microseconds)), str(uuid.UUID(run_id))
    except (ValueError, OverflowError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error
