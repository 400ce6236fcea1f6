"""Checks that all lines of a file agree with the first: form, endpoint, model, and whether they have ids."""

from services.scheduler.uploads.checking.row_fields import (
    Line,
    RowFields,
    batch_row,
    is_batch_line,
    plain_row,
)
from services.scheduler.uploads.checking.seen_ids import SeenIds
from services.scheduler.uploads.dataset import RowFacts
from services.scheduler.uploads.errors import FaultKind, LineFault
from services.scheduler.uploads.faults import kind_of, shown

_NO_BATCH_LINE = "A batch line has custom_id, method, url and body; this one has none of them."


class LineAgreement:
    """Takes lines in order. The id of a batch request also counts if the line has other faults."""

    def __init__(self, ids: SeenIds, *, is_batch_only: bool = False) -> None:
        self._ids = ids
        self._is_batch_only = is_batch_only
        self._is_batch: bool | None = is_batch_only or None
        self._has_ids: bool | None = None
        self._url = ""
        self._model = ""
        self._targets = self._rows = 0

    @property
    def id_field(self) -> str:
        return "custom_id" if self._is_batch else "id"

    def row(self, number: int, value: object) -> RowFields:
        """Raises `LineFault`."""
        if not isinstance(value, dict):
            raise LineFault("", f"A line must be a JSON object, not {kind_of(value)}.")
        is_batch = is_batch_line(value)
        if self._is_batch_only and not is_batch:
            raise LineFault("", _NO_BATCH_LINE)
        if self._is_batch is None:
            self._is_batch = is_batch
        elif is_batch is not self._is_batch:
            raise LineFault("", _mixed_forms(is_batch=is_batch))
        row = self._batch_row(number, value) if is_batch else self._plain_row(number, value)
        self._rows += 1
        self._targets += "target" in row
        return row

    def facts(self, row_count: int) -> RowFacts:
        models = (self._model,) if self._model else ()
        return RowFacts(row_count, self._targets, models, self._url)

    def _batch_row(self, number: int, value: Line) -> RowFields:
        custom_id = value.get("custom_id")
        if isinstance(custom_id, str) and custom_id:
            self._ids.add(custom_id, number)
        row = batch_row(value)
        url, model = value["url"], row["body"].get("model")
        if url != self._url:
            self._agree_on_url(str(url))
        if model is not None and model != self._model:
            self._agree_on_model(str(model))
        return row

    def _agree_on_url(self, url: str) -> None:
        if self._url:
            sentence = f"url is {url}; lines above have {self._url}. A file may have one of them only."
            raise LineFault("url", sentence, FaultKind.OTHER_URL)
        self._url = url

    def _agree_on_model(self, model: str) -> None:
        if self._model:
            sentence = (
                f"model is {shown(model)}; lines above name {shown(self._model)}. A file may name one only."
            )
            raise LineFault("body.model", sentence, FaultKind.MODEL_MISMATCH)
        self._model = model

    def _plain_row(self, number: int, value: Line) -> RowFields:
        row = plain_row(value)
        has_id = "id" in row
        if self._has_ids is None:
            self._has_ids = has_id
        elif has_id is not self._has_ids:
            raise LineFault("id", _mixed_ids(has_id=has_id))
        if has_id:
            self._ids.add(row["id"], number)
        else:
            # Rows count from 0, without blank lines.
            row = {"id": str(self._rows), **row}
        return row


def _mixed_forms(*, is_batch: bool) -> str:
    forms = ("a line with a prompt or messages", "a batch request")
    return f"This is {forms[is_batch]}, lines above are not. A file has lines of one form."


def _mixed_ids(*, has_id: bool) -> str:
    forms = ("This line has no id, lines above have one", "This line has an id, lines above have none")
    return f"{forms[has_id]}. Give one to every line or to none."
