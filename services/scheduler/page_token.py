"""The place behind a page of a list, as a text that clients hand back unread."""

import base64
import binascii
from datetime import datetime
from uuid import UUID

from services.scheduler.datasets.dataset import DatasetCursor, DatasetId, is_dataset_id
from services.scheduler.errors import InvalidPageToken
from services.scheduler.runs.run import Run
from services.scheduler.runs.run_list import RunCursor


def token_behind(run: Run, total: int) -> str:
    return _token(run.created_at, run.run_id, total)


def cursor_from_token(token: str) -> RunCursor | None:
    """None for the first page."""
    if not token:
        return None
    try:
        created_at, run_id, total = _place(token)
        return RunCursor(created_at, str(UUID(run_id)), total)
    except (ValueError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error


def token_of_datasets(behind: DatasetCursor | None) -> str:
    """Empty where there is no further page."""
    return _token(behind.uploaded_at, behind.dataset_id, behind.total) if behind else ""


def dataset_cursor_from_token(token: str) -> DatasetCursor | None:
    """None for the first page."""
    if not token:
        return None
    try:
        uploaded_at, dataset_id, total = _place(token)
    except (ValueError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error
    if not is_dataset_id(dataset_id):
        raise InvalidPageToken(page_token=token)
    return DatasetCursor(uploaded_at, DatasetId(dataset_id), total)


def _token(time: datetime, name: str, total: int) -> str:
    return base64.urlsafe_b64encode(f"{time.isoformat()} {name} {total}".encode()).decode()


def _place(token: str) -> tuple[datetime, str, int]:
    written, name, total = base64.urlsafe_b64decode(token).decode().split(" ")
    time = datetime.fromisoformat(written)
    if time.tzinfo is None:
        raise ValueError("a time without its zone")
    return time, name, int(total)
