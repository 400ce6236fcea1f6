"""Page tokens of lists of data sets."""

import binascii

from services.scheduler.datasets.dataset import DatasetCursor, DatasetId, is_dataset_id
from services.scheduler.errors import InvalidPageToken
from services.scheduler.requests import page_token, read_page_token


def token_of_datasets(behind: DatasetCursor | None) -> str:
    """Empty where there is no further page."""
    return page_token(behind.uploaded_at, behind.dataset_id, behind.total) if behind else ""


def dataset_cursor_from_token(token: str) -> DatasetCursor | None:
    """None for the first page."""
    if not token:
        return None
    try:
        uploaded_at, dataset_id, total = read_page_token(token)
    except (ValueError, binascii.Error) as error:
        raise InvalidPageToken(page_token=token) from error
    if not is_dataset_id(dataset_id):
        raise InvalidPageToken(page_token=token)
    return DatasetCursor(uploaded_at, DatasetId(dataset_id), total)
