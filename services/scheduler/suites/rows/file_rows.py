"""Rows from files: those in the suite's own folder, and a local mirror of hub data sets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import yaml

from services.scheduler.suites.rows.csv_form import TEXT_WITH_HEADER, CsvForm
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
    ".json": read_jsonl,
    ".parquet": read_parquet,
}
_TABLES = (".csv", ".tsv")


def open_rows(path: Path, csv: CsvForm = TEXT_WITH_HEADER) -> tuple[Iterator[SourceRow], str]:
    """Returns the rows, which can be read once, and the file's digest as their revision.

    Raises `RowsMissing` if the file has no rows, `OSError` if it cannot be read.
    """
    read = partial(read_csv, form=csv) if path.suffix in _TABLES else _READERS.get(path.suffix)
    if read is None:
        known = ", ".join([*_READERS, *_TABLES])
        raise RowsMissing(f"{path.name} is none of the files that are read: {known}")
    pinned = pin_file(path)
    return read(pinned), f"sha256:{pinned.digest}"


class FileRows:
    """Rows of files in the suite's own folder."""

    def open(self, reference: RowsReference) -> RowSet:
        if reference.file is None:
            raise RowsMissing("it is not a file of the suite")
        try:
            rows, revision = open_rows(reference.file, reference.csv)
        except OSError as error:
            raise RowsMissing(f"the file cannot be read ({error.strerror})") from error
        return RowSet(rows, Provenance(source="suite", location=str(reference), revision=revision))


class MirrorRows:
    """Rows of hub data sets from a folder whose mirror.yaml maps (id, config, split) to files.

    A task that names files of the data set gets them from the `folder` of an entry, which has them by their
    paths there. `folder` is None if no mirror is configured.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def open(self, reference: RowsReference) -> RowSet:
        if self._folder is None:
            raise RowsMissing("no local mirror is set (PROCTOR_DATA_DIR)")
        entry = self._entry(self._folder / "mirror.yaml", reference)
        place = str(entry.get("folder" if reference.data_files else "file"))
        files = _files(self._folder / place, reference.data_files)
        opened: list[tuple[Iterator[SourceRow], str]] = []
        for file in files:
            try:
                opened.append(open_rows(file, reference.csv))
            except OSError as error:
                raise RowsMissing(f"the mirror's file {file} cannot be read ({error.strerror})") from error
        provenance = Provenance(
            source="mirror",
            location=f"{reference} from {place}",
            revision=" ".join(revision for _, revision in opened),
            is_stand_in=bool(entry.get("stand_in", False)),
        )
        return RowSet(chain.from_iterable(rows for rows, _ in opened), provenance)

    def _entry(self, index: Path, reference: RowsReference) -> Mapping[str, object]:
        wanted = (reference.hub_id, reference.config, reference.split)
        for entry in _entries(index):
            if reference.data_files:
                if entry.get("id") == reference.hub_id and "folder" in entry:
                    return entry
            elif (entry.get("id"), entry.get("config") or "", entry.get("split")) == wanted:
                return entry
        raise RowsMissing(f"the local mirror {self._folder} (PROCTOR_DATA_DIR) has no entry for it")


def _files(place: Path, data_files: Sequence[str]) -> Sequence[Path]:
    """The file itself, or the named files in the folder, of which a name may be a pattern."""
    if not data_files:
        return [place]
    try:
        found = [file for name in data_files for file in sorted(place.glob(name))]
    except ValueError as error:
        raise RowsMissing(f"{data_files[0]} is no pattern of files ({error})") from error
    if not found:
        raise RowsMissing(f"the mirror's folder {place} has no file {data_files[0]}")
    return found


def _entries(index: Path) -> list[Mapping[str, object]]:
    try:
        listed = yaml.safe_load(index.read_text(encoding="utf-8"))
    except OSError as error:
        raise RowsMissing(f"the local mirror has no readable {index} ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RowsMissing(f"{index} is not valid YAML ({' '.join(str(error).split())})") from error
    entries = listed.get("datasets") if isinstance(listed, dict) else None
    if not isinstance(entries, list) or not all(
        isinstance(one, dict) and not {"file", "folder"}.isdisjoint(one) for one in entries
    ):
        raise RowsMissing(f"{index} has no list 'datasets' of entries with id, config, split and file")
    return entries
