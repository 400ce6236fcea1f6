"""Lines of an error file for a run of which results knows nothing: each of its rows has no answer."""

from collections.abc import Iterable, Iterator
from itertools import islice
from uuid import UUID, uuid5

import orjson

from proctor.values.plain import with_line_feeds_only
from services.scheduler.batches.state import MissingLines
from services.scheduler.datasets.dataset_row import DatasetRow
from services.scheduler.runs.run import RunId

_LINES_AT_A_TIME = 1000


def lines_of_unasked(run_id: RunId, rows: Iterable[DatasetRow], missing: MissingLines) -> Iterator[bytes]:
    """In the order of the rows, many in a piece; the same whenever they are written."""
    lines = _lines(run_id, rows, missing)
    while piece := b"".join(islice(lines, _LINES_AT_A_TIME)):
        yield piece


def _lines(run_id: RunId, rows: Iterable[DatasetRow], missing: MissingLines) -> Iterator[bytes]:
    error = {"code": missing.code, "message": missing.message}
    namespace = UUID(run_id)
    for row in rows:
        line = {
            "id": f"batch_req_{uuid5(namespace, str(row.row)).hex}",
            "custom_id": row.row_id,
            "response": None,
            "error": error,
        }
        yield with_line_feeds_only(orjson.dumps(line)) + b"\n"
