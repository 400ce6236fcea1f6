"""Rows from files: those in the suite's own folder, and a local mirror of hub data sets."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

from services.scheduler.suites.rows.errors import RowsMissing
from services.scheduler.suites.rows.file_readers import (
    PinnedFile,
    pin_file,
    read_csv,
    read_jsonl,
    read_parquet,
)
from services.scheduler.suites.rows.row_source import Provenance, RowSet, RowsReference, SourceRow

_READERS: Mapping[str, Callable[[PinnedFile], Iterator[SourceRow]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}


def open_rows(path: Path) -> tuple[Iterator[SourceRow], str]:
    """Returns the rows, which can be read once, and the file's digest as their revision.

    Raises `RowsMissing` if the file has no rows, `OSError` if it cannot be read.
    """
    read = _READERS.get(path.suffix)
    if read is None:
        raise RowsMissing(f"{path.name} is none of the files that are read: {', '.join(_READERS)}")
    pinned = pin_file(path)
    return read(pinned), f"sha256:{pinned.digest}"


class FileRows:
    """Rows of files in the suite's own folder."""

    def open(self, reference: RowsReference) -> RowSet:
        if reference.file is None:
            raise RowsMissing("it is not a file of the suite")
        try:
            rows, revision = open_rows(reference.file)
        except OSError as error:
            raise RowsMissing(f"the file cannot be read ({error.strerror})") from error
        return RowSet(rows, Provenance(source="suite", location=str(reference), revision=revision))


class MirrorRows:
    """Rows of hub data sets from a folder whose mirror.yaml maps (id, config, split) to files.

    `folder` is None if no mirror is configured.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def open(self, reference: RowsReference) -> RowSet:
        if self._folder is None:
            raise RowsMissing("no local mirror is set (PROCTOR_DATA_DIR)")
        entry = self._entry(self._folder / "mirror.yaml", reference)
        file = self._folder / str(entry["file"])
        try:
            rows, revision = open_rows(file)
        except OSError as error:
            raise RowsMissing(f"the mirror's file {file} cannot be read ({error.strerror})") from error
        provenance = Provenance(
            source="mirror",
            location=f"{reference} from {entry['file']}",
            revision=revision,
            is_stand_in=bool(entry.get("stand_in", False)),
        )
        return RowSet(rows, provenance)

    def _entry(self, index: Path, reference: RowsReference) -> Mapping[str, object]:
        wanted = (reference.hub_id, reference.config, reference.split)
        for entry in _entries(index):
            if (entry.get("id"), entry.get("config") or "", entry.get("split")) == wanted:
                return entry
        raise RowsMissing(f"the local mirror {self._folder} (PROCTOR_DATA_DIR) has no entry for it")


def _entries(index: Path) -> list[Mapping[str, object]]:
    try:
        listed = yaml.safe_load(index.read_text(encoding="utf-8"))
    except OSError as error:
        raise RowsMissing(f"the local mirror has no readable {index} ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RowsMissing(f"{index} is not valid YAML ({' '.join(str(error).split())})") from error
    entries = listed.get("datasets") if isinstance(listed, dict) else None
    if not isinstance(entries, list) or not all(isinstance(one, dict) and "file" in one for one in entries):
        raise RowsMissing(f"{index} has no list 'datasets' of entries with id, config, split and file")
    return entries
