"""Rows come from the mirror, the suite's files or the hub; neither reachable is one clear error."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from services.scheduler.suites.errors import RowsUnavailable
from services.scheduler.suites.rows import hub_rows
from services.scheduler.suites.rows.csv_form import CsvForm
from services.scheduler.suites.rows.errors import RowsMissing, UnreadableRow
from services.scheduler.suites.rows.file_rows import FileRows, MirrorRows
from services.scheduler.suites.rows.first_available_source import FirstAvailableSource
from services.scheduler.suites.rows.row_source import RowSet, RowsReference

LINES = '{"text": "a\\u2028b", "label": 1}\n\n{"text": "c", "label": 0}'
HUB = RowsReference("glue", hub_id="org/set", config="one", split="validation")


def mirror(folder: Path, entries: str) -> MirrorRows:
    (folder / "rows.jsonl").write_text(LINES)
    (folder / "mirror.yaml").write_text(f"datasets:\n{entries}")
    return MirrorRows(folder)


class Nowhere:
    def __init__(self, reason: str) -> None:
        self.reason = reason

    def open(self, _: RowsReference) -> RowSet:
        raise RowsMissing(self.reason)


def test_rows_come_from_the_file_that_the_mirror_names(tmp_path: Path) -> None:
    source = mirror(tmp_path, "  - {id: org/set, config: one, split: validation, file: rows.jsonl}\n")
    found = source.open(HUB)
    assert list(found.rows) == [{"text": "a\u2028b", "label": 1}, {"text": "c", "label": 0}]
    assert found.provenance.revision == f"sha256:{hashlib.sha256(LINES.encode()).hexdigest()}"
    assert not found.provenance.is_stand_in


def test_rows_that_stand_in_for_others_say_so(tmp_path: Path) -> None:
    entry = "  - {id: org/set, config: one, split: validation, file: rows.jsonl, stand_in: true}\n"
    assert mirror(tmp_path, entry).open(HUB).provenance.is_stand_in


def test_a_data_set_without_config_is_found(tmp_path: Path) -> None:
    source = mirror(tmp_path, '  - {id: org/set, config: "", split: test, file: rows.jsonl}\n')
    assert source.open(RowsReference("x", hub_id="org/set", split="test")).provenance.source == "mirror"


def test_files_that_a_task_names_come_from_the_folder_of_their_data_set(tmp_path: Path) -> None:
    source = mirror(tmp_path, "  - {id: org/set, folder: set, stand_in: true}\n")
    (tmp_path / "set" / "data").mkdir(parents=True)
    for name, text in {"data/a.csv": "1,x\n", "data/b.csv": "2,y\n3,\n", "more.csv": "4,z\n"}.items():
        (tmp_path / "set" / name).write_text(text)
    form = CsvForm(("n", "t"), has_header=False, infers_types=True)
    files = RowsReference(
        "x", hub_id="org/set", split="test", data_files=("data/*.csv", "more.csv"), csv=form
    )
    found = source.open(files)
    assert [tuple(row.values()) for row in found.rows] == [(1, "x"), (2, "y"), (3, None), (4, "z")]
    assert found.provenance.is_stand_in
    assert found.provenance.revision.count("sha256:") == 3
    with pytest.raises(RowsMissing, match=r"has no file gone\.csv"):
        source.open(replace(files, data_files=("gone.csv",)))
    with pytest.raises(RowsMissing, match="has no entry for it"):
        source.open(replace(files, data_files=()))


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("  - {id: org/set, config: one, split: train, file: rows.jsonl}\n", "has no entry for it"),
        ("  - {id: org/set, config: one, split: validation, file: gone.jsonl}\n", "cannot be read"),
        ("  - {id: org/set}\n", "has no list 'datasets'"),
        ("  - {id: [\n", "is not valid YAML"),
    ],
)
def test_a_mirror_without_the_rows_says_why(tmp_path: Path, entries: str, reason: str) -> None:
    with pytest.raises(RowsMissing, match=reason):
        mirror(tmp_path, entries).open(HUB)


def test_a_folder_that_is_no_mirror_says_so(tmp_path: Path) -> None:
    with pytest.raises(RowsMissing, match="has no readable"):
        MirrorRows(tmp_path).open(HUB)


@pytest.mark.parametrize(("line", "problem"), [("{", "not valid JSON"), ("[1]", "a JSON object is needed")])
def test_a_line_that_is_no_row_is_reported_with_its_number(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"a": 1}}\n{line}\n')
    rows = iter(FileRows().open(RowsReference("own", file=file)).rows)
    assert next(rows) == {"a": 1}
    with pytest.raises(UnreadableRow, match=f"row 2: {problem}"):
        next(rows)


def test_the_first_source_that_has_the_rows_gives_them(tmp_path: Path) -> None:
    source = mirror(tmp_path, "  - {id: org/set, config: one, split: validation, file: rows.jsonl}\n")
    chain = FirstAvailableSource(FileRows(), [Nowhere("not here"), source, Nowhere("never asked")])
    assert chain.open(HUB).provenance.source == "mirror"


def test_rows_that_are_nowhere_are_reported_in_one_sentence_that_names_every_source() -> None:
    chain = FirstAvailableSource(FileRows(), [MirrorRows(None), Nowhere("the hub cannot be reached")])
    with pytest.raises(RowsUnavailable) as raised:
        chain.open(HUB)
    assert str(raised.value) == (
        "Failed to load GLUE dataset: org/set (config 'one', split 'validation'): "
        "no local mirror is set (PROCTOR_DATA_DIR); the hub cannot be reached."
    )


def test_a_missing_file_of_a_suite_is_reported(tmp_path: Path) -> None:
    chain = FirstAvailableSource(FileRows(), [])
    with pytest.raises(RowsUnavailable, match=r"Failed to load OWN dataset: .*gone.jsonl: the file cannot"):
        chain.open(RowsReference("own", file=tmp_path / "gone.jsonl"))


@pytest.mark.parametrize(
    ("asked", "fetched", "revision"),
    [
        ("main", "a1" * 20, "a1" * 20),
        (None, "a1" * 20, "a1" * 20),
        ("v2", "1b2c", "v2"),
        (None, "1b2c", "fingerprint:f00"),
        (None, None, "fingerprint:f00"),
    ],
)
def test_the_revision_of_a_hub_data_set_is_the_commit_that_was_fetched(
    asked: str | None, fetched: str | None, revision: str
) -> None:
    reference = RowsReference("own", hub_id="org/set", split="test", revision=asked)
    assert hub_rows.pinned_revision(reference, fetched, "f00") == revision
