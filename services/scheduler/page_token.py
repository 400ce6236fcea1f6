"""The place behind a page of runs, as a text that clients hand back unread."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from services.scheduler.errors import InvalidPageToken
from services.scheduler.runs.run import Run
from services.scheduler.runs.run_list import RunCursor


def token_behind(run: Run, total: int) -> str:
    place = f"{run.created_at.isoformat()} {run.run_id} {total}"
    return base64.urlsafe_b64encode(place.encode()).decode()


def cursor_from_token(token: str) -> RunCursor | None:
    """None for the first page."""
    if not token:
        return None
    try:
        time, run_id, total = base64.urlsafe_b64decode(token).decode().split(" ")
        created_at = datetime.fromisoformat(time)
        if created_at.tzinfo is None:
            raise InvalidPageToken(page_token=token)
        return RunCursor(created_at, str(UUID(run_id)), int(total))
    except (ValueError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error
