"""The rows of a task from the first place that has them: its own files, the local mirror, else the hub."""

from collections.abc import Sequence

from services.scheduler.suites.rows.row_source import RowSet, RowsNotHere, RowSource, RowsReference
from services.scheduler.suites.suite_errors import DatasetUnavailable


class FirstSourceThatHasThem:
    """Sources are asked in order. Where none has the rows, the error tells why each of them does not."""

    def __init__(self, own_files: RowSource, hub_places: Sequence[RowSource]) -> None:
        self._own_files = own_files
        self._hub_places = tuple(hub_places)

    def open(self, reference: RowsReference) -> RowSet:
        reasons = []
        for source in (self._own_files,) if reference.file is not None else self._hub_places:
            try:
                return source.open(reference)
            except RowsNotHere as reason:
                reasons.append(str(reason))
        raise DatasetUnavailable(reference.suite, str(reference), reasons)
