"""The port by which rows of data sets are read."""

from typing import Protocol

from services.scheduler.suites.rows.row_source import RowSet, RowsReference


class RowSource(Protocol):
    def open(self, reference: RowsReference) -> RowSet:
        """Raise `RowsMissing` at once, not while the rows are read."""
        ...
