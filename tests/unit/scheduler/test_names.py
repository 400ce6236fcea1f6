"""Names of uploads and suites do not look like other names, and folders of suites are this user's alone."""

from pathlib import Path

import pytest

from services.common.errors import InvalidParameter, InvalidSetting
from services.common.requests.request_fields import hidden_problem
from services.scheduler.suites.file_suite_cache import FileSuiteCache
from services.scheduler.uploads.add_dataset import check_header
from tests.fakes.suites.suite_documents import document

SUITE = """\
task: sums
version: "1"
dataset: {file: rows.jsonl}
output_type: generate_until
doc_to_text: "{{a}}"
doc_to_target: "{{b}}"
metric_list: [{metric: exact_match}]
"""


@pytest.mark.parametrize("name", ["rows\u202elnosj.exe", "a\u2066b", "a\x1b[31mb", "a\nb", "a\0b", "a\x85b"])
def test_name_that_hides_what_it_is_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="control character, or one that turns"):
        check_header(name, "ann")


@pytest.mark.parametrize("name", ["Zoë 日本 \u202fPM.jsonl", "👩\u200d🔬.csv", "قائمة.jsonl"])
def test_name_of_any_script_is_a_name(name: str) -> None:
    assert hidden_problem("name", name) is None


@pytest.mark.parametrize("kind", ["writable", "link"])
def test_folder_of_suites_that_others_may_write_to_is_refused(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "suites"
    if kind == "writable":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        (tmp_path / "other").mkdir()
        folder.symlink_to(tmp_path / "other")
    with pytest.raises(InvalidSetting, match=r"write to|is a link"):
        FileSuiteCache(folder).put("d" * 64, document(SUITE, rows_jsonl='{"a": 1, "b": 2}\n'))
