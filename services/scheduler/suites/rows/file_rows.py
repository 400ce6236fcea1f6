"""Rows from files of the suite's own folder."""

from services.scheduler.suites.rows.file_formats import open_rows
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsNotHere, RowsReference


class FileRows:
    def open(self, reference: RowsReference) -> RowSet:
        if reference.file is None:
            raise RowsNotHere("it is no file of the suite")
        try:
            opened = open_rows(reference.file)
        except OSError as error:
            raise RowsNotHere(f"the file cannot be read ({error.strerror})") from error
        provenance = Provenance(source="suite", location=str(reference), revision=opened.revision)
        return RowSet(opened.rows, provenance)
