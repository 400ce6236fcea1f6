"""Opens rows from the first source that has them."""

from collections.abc import Sequence

from services.scheduler.suites.errors import RowsUnavailable
from services.scheduler.suites.rows.errors import RowsMissing
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.rows.row_source import RowSet, RowsReference


class FirstAvailableSource:
    """Tries sources in order. If none has the rows, the error has the reason of each."""

    def __init__(self, own_files: RowSource, hub_sources: Sequence[RowSource]) -> None:
        self._own_files = own_files
        self._hub_sources = tuple(hub_sources)

    def open(self, reference: RowsReference) -> RowSet:
        reasons = []
        for source in (self._own_files,) if reference.file is not None else self._hub_sources:
            try:
                return source.open(reference)
            except RowsMissing as reason:
                reasons.append(str(reason))
        raise RowsUnavailable(reference.suite, str(reference), reasons)
