"""Rows through the real `datasets` library, in a process of its own since it reads its settings at import."""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest
from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

from services.scheduler.suites.rows.errors import RowsMissing
from services.scheduler.suites.rows.hub_rows import refuse_large_files, refuse_local_files
from services.scheduler.suites.rows.row_source import FILE_READERS
from tests.fakes.thorough_cases import first_cases

ROOT = Path(__file__).parents[4]

PROGRAM = """
import sys
from services.scheduler.suites.rows.hub_rows import HubRows
from services.scheduler.suites.rows.row_source import RowsMissing, RowsReference
try:
    found = HubRows(max_bytes=2**20).open(RowsReference("suite", hub_id=sys.argv[1], split=sys.argv[2]))
    print(found.provenance.source, list(found.rows))
except RowsMissing as error:
    print(error)
"""

TWO_AT_ONCE = """
import sys
from concurrent.futures import ThreadPoolExecutor
from services.scheduler.suites.rows.hub_rows import HubRows
from services.scheduler.suites.rows.row_source import RowsReference
source = HubRows(max_bytes=2**20)
reference = RowsReference("suite", hub_id=sys.argv[1], split=sys.argv[2])
with ThreadPoolExecutor(2) as pool:
    found = list(pool.map(lambda _: source.open(reference), range(2)))
print([list(one.rows) for one in found], len({one.provenance.revision for one in found}))
"""


def ask(home: Path, dataset: str, split: str, program: str = PROGRAM, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
    kept.pop("HF_HUB_OFFLINE", None)
    done = subprocess.run(
        [sys.executable, "-c", program, dataset, split],
        cwd=ROOT, env={**kept, "HF_HOME": str(home), **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


def test_rows_are_read_through_the_library(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "a", "label": 1}\n{"text": "b", "label": 0}\n')
    expected = "hub [{'text': 'a', 'label': 1}, {'text': 'b', 'label': 0}]"
    assert ask(tmp_path, str(folder), "test") == expected


def test_a_folder_of_the_working_directory_is_not_taken_for_a_data_set_of_the_hub(tmp_path: Path) -> None:
    assert "named by its absolute path" in ask(tmp_path, "tests", "test")


@first_cases(1, "reader", ["text", "json", "parquet"])
def test_a_way_to_read_files_is_not_taken_for_a_data_set_of_the_hub(tmp_path: Path, reader: str) -> None:
    reported = ask(tmp_path, reader, "train", HF_HUB_OFFLINE="1")
    assert reported.startswith("this names a way to read files")


def test_every_way_of_the_library_to_read_files_is_known() -> None:
    assert _PACKAGED_DATASETS_MODULES.keys() <= FILE_READERS


@pytest.mark.parametrize("file", ["/etc/passwd", "../rows.csv", "http://127.0.0.1/rows.csv"])
def test_a_data_set_of_the_hub_that_names_files_of_others_is_refused(file: str) -> None:
    own = "hf://datasets/org/set@0123/rows.csv"
    refuse_local_files({"test": [own]})
    with pytest.raises(RowsMissing, match="not its own"):
        refuse_local_files({"test": [own], "train": [own, file]})


def test_two_runs_that_want_the_same_rows_fetch_them_once(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "a"}\n')
    assert ask(tmp_path, str(folder), "test", TWO_AT_ONCE) == "[[{'text': 'a'}], [{'text': 'a'}]] 1"
    assert len(list((tmp_path / "datasets").rglob("*.arrow"))) == 1


@pytest.mark.thorough
def test_a_split_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "a"}\n')
    assert ask(tmp_path, str(folder), "train").startswith('the hub does not give it (Unknown split "train"')


def test_an_unreachable_hub_is_reported_at_once(tmp_path: Path) -> None:
    reported = ask(tmp_path, "org/set", "test", HF_ENDPOINT="http://127.0.0.1:1")
    assert reported == "the hub http://127.0.0.1:1 cannot be reached ([Errno 111] Connection refused)"


PRIVATE = """
import shutil, sys
from pathlib import Path
import datasets
folder, home = Path(sys.argv[1]), Path(sys.argv[2])
datasets.load_dataset(str(folder))
[made] = {file.parent for file in (home / "datasets").rglob("*.arrow")}
shutil.copytree(made, home / "datasets" / "house___private" / "default" / "0.0.0" / made.name)
"""


def test_what_the_account_has_downloaded_for_itself_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "test.jsonl").write_text('{"text": "secret"}\n')
    ask(tmp_path, str(folder), str(tmp_path), PRIVATE)
    # The library itself would give it.
    assert "secret" in ask(tmp_path, "house/private", "test", HF_HUB_OFFLINE="1")
    own = PROGRAM.replace("HubRows(", f"HubRows(cache_dir=pathlib.Path({str(tmp_path / 'own')!r}), ")
    reported = ask(tmp_path, "house/private", "test", f"import pathlib\n{own}", HF_HUB_OFFLINE="1")
    assert reported.startswith("the hub does not give it (")


@pytest.mark.thorough
def test_offline_without_a_cached_copy_is_reported(tmp_path: Path) -> None:
    reported = ask(tmp_path, "org/set", "test", HF_HUB_OFFLINE="1")
    assert reported.startswith("the hub does not give it (")


WITH_TOKEN = PROGRAM.replace("HubRows(", "HubRows(token_datasets={'house/private'}, ")


class _Hub(BaseHTTPRequestHandler):
    """A hub that has nothing and keeps the keys that it is shown."""

    keys: ClassVar[set[str]] = set()

    def do_GET(self) -> None:
        type(self).keys.add(self.headers.get("authorization", ""))
        self.send_error(404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Not on stderr."""


@first_cases(1, ("dataset", "keys"), [("house/private", {"Bearer hf_secret"}), ("any/other", set())])
def test_token_of_the_operator_is_used_only_for_listed_data_sets(
    tmp_path: Path, dataset: str, keys: set[str]
) -> None:
    _Hub.keys = set()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as hub:
        Thread(target=hub.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{hub.server_port}"
        reported = ask(tmp_path, dataset, "test", WITH_TOKEN, HF_ENDPOINT=endpoint, HF_TOKEN="hf_secret")
        hub.shutdown()
    assert reported.startswith("the hub does not give it")
    # The library shows it where it must, and asks for other files without.
    assert _Hub.keys - {""} == keys


def test_data_set_above_the_limit_is_not_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"datasets/a/b@main/x.parquet": 6, "datasets/a/b@main/y.parquet": 5}
    monkeypatch.setattr("huggingface_hub.HfFileSystem.info", lambda _, path: {"size": sizes[path]})
    files = {"train": ["hf://datasets/a/b@main/x.parquet"], "test": ["hf://datasets/a/b@main/y.parquet"]}
    refuse_large_files(files, token=False, max_bytes=11)
    with pytest.raises(RowsMissing, match="more than 10 bytes; an operator raises"):
        refuse_large_files(files, token=False, max_bytes=10)
