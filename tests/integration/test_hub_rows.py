"""Rows through the real `datasets` library, in a process of its own since it reads its settings at import."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PROGRAM = """
import sys
from services.scheduler.suites.hub_rows import HubRows
from services.scheduler.suites.row_source import RowsNotHere, RowsReference
try:
    found = HubRows().open(RowsReference("suite", dataset_id=sys.argv[1], split=sys.argv[2]))
    print(found.provenance.source, found.provenance.row_count, list(found.rows))
except RowsNotHere as error:
    print(error)
"""


def ask(home: Path, dataset: str, split: str, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    kept.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, dataset, split],
        cwd=ROOT, env={**kept, "HF_HOME": str(home), **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_rows_are_read_through_the_library(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n')
    expected = "hub 2 [{'text': 'a', 'label': 1}, {'text': 'b', 'label': 0}]"
    assert ask(tmp_path, str(folder), "test") == expected


def test_a_split_that_does_not_exist_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "a"}\n')
    assert ask(tmp_path, str(folder), "train").startswith('the hub does not give it (Unknown split "train"')


def test_an_unreachable_hub_is_told_at_once(tmp_path: Path) -> None:
    told = ask(tmp_path, "org/set", "test", HF_ENDPOINT="http://127.0.0.1:1")
    assert told == "the hub http://127.0.0.1:1 cannot be reached ([Errno 111] Connection refused)"


def test_offline_without_a_cached_copy_is_told(tmp_path: Path) -> None:
    told = ask(tmp_path, "org/set", "test", HF_HUB_OFFLINE="1")
    assert told.startswith("the hub does not give it (")
