"""Rows from files of the suite's own folder."""

from services.scheduler.suites.jsonl_file import describe_jsonl, read_jsonl
from services.scheduler.suites.row_source import Provenance, RowSet, RowsNotHere, RowsReference


class FileRows:
    def open(self, reference: RowsReference) -> RowSet:
        if reference.file is None:
            raise RowsNotHere("it is no file of the suite")
        try:
            facts = describe_jsonl(reference.file)
        except OSError as error:
            raise RowsNotHere(f"the file cannot be read ({error.strerror})") from error
        provenance = Provenance(
            source="suite",
            location=f"{reference.suite}/{reference.file.name}",
            revision=f"sha256:{facts.digest}",
            row_count=facts.row_count,
        )
        return RowSet(read_jsonl(reference.file), provenance)
