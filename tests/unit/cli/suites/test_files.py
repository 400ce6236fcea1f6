"""Which files travel with a suite of one's own, and what filters may look like."""

from pathlib import Path

import pytest

from proctor.cli.options import metric_use
from proctor.cli.runs.rescore import filters_json
from proctor.cli.suites.files import filter_list, suite_document, suite_root
from proctor.client.errors import Refused


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
    return folder / "mine.yaml"


def test_files_that_the_document_names_travel_with_it(tmp_path: Path) -> None:
    text = "tasks:\n  - {task: a, dataset: {file: rows.jsonl, fewshot_file: shots.csv}}\n"
    path = write(tmp_path, mine__yaml=text, rows__jsonl="{}\n", shots__csv="a\n", other__jsonl="{}\n")
    document = suite_document(path)
    assert (document.text, document.file_name) == (text, "mine.yaml")
    assert dict(document.files) == {"rows.jsonl": b"{}\n", "shots.csv": b"a\n"}


def test_includes_bring_the_files_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    path = write(tmp_path, mine__yaml="task: mine\ninclude: [parts/a.yaml]\n", rows__jsonl="{}\n")
    write(
        tmp_path / "parts",
        a__yaml="include: b.yaml\n",
        b__yaml="include: a.yaml\ndataset: {file: rows.jsonl}\n",
    )
    assert set(suite_document(path).files) == {"parts/a.yaml", "parts/b.yaml", "rows.jsonl"}


def test_tasks_bring_the_files_of_their_names(tmp_path: Path) -> None:
    data = "dataset_kwargs: {data_files: {test: rows.jsonl}}\n"
    path = write(tmp_path, mine__yaml="group: mine\ntask: [a, b]\n", a__yaml=data, rows__jsonl="{}\n")
    assert set(suite_document(path).files) == {"a.yaml", "rows.jsonl"}


def test_members_of_a_group_travel_by_their_names_from_all_of_the_root(tmp_path: Path) -> None:
    root = tmp_path / "lm_eval" / "tasks"
    for folder in ("speech/all", "words", "other"):
        (root / folder).mkdir(parents=True)
    write(root / "speech" / "all", _all__yaml="group: speech\ntask: [hues, {task: first}, {group: inner}]\n")
    write(root / "speech", base="dataset_path: org/words\ntag: [hues]\n", other__yaml="task: other\n")
    write(root / "words", a__yaml="task: one\ninclude: ../speech/base\n", first__yaml="task: not_first\n")
    write(root / "other", b__yaml="task: first\n", c__yaml="group: inner\ntask: one\n")
    path = root / "speech" / "all" / "_all.yaml"
    assert (suite_root(path), suite_root(path, root / "speech")) == (root, root / "speech")
    document = suite_document(path, suite_root(path))
    assert document.text == 'include: "speech/all/_all.yaml"\n'
    named = {"speech/all/_all.yaml", "speech/base", "words/a.yaml", "other/b.yaml", "other/c.yaml"}
    assert set(document.files) == named


def test_root_is_a_folder_around_the_file(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="--root is a folder around it"):
        suite_root(tmp_path / "a" / "mine.yaml", tmp_path / "b")


def test_tags_of_other_tools_are_no_obstacle(tmp_path: Path) -> None:
    text = "process_docs: !function utils.process\ndataset: {file: rows.jsonl}\n"
    path = write(tmp_path, mine__yaml=text, rows__jsonl="{}\n")
    assert set(suite_document(path).files) == {"rows.jsonl"}


def test_python_files_travel_with_what_they_import_and_name(tmp_path: Path) -> None:
    root = tmp_path / "lm_eval" / "tasks"
    for folder in ("own", "other"):
        (root / folder).mkdir(parents=True)
    write(root / "own", mine__yaml="include: ../base.yaml\ndoc_to_text: !function utils.text\n")
    write(root, base__yaml="process_docs: !function shared.process\n", shared__py="import json\n")
    code = "from .words import text\nfrom lm_eval.tasks.other import more\nNAMES = 'names.json'\n"
    write(root / "own", utils__py=code, words__py="text = str\n", names__json="[]", unused__py="")
    write(root / "other", more__py="from . import last", last__py="")
    path = root / "own" / "mine.yaml"
    files = {"base.yaml", "own/mine.yaml", "shared.py", "own/utils.py", "own/words.py", "own/names.json"}
    assert set(suite_document(path, suite_root(path)).files) == files | {"other/more.py", "other/last.py"}


def test_a_python_file_outside_of_the_root_is_left_to_the_check(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    write(tmp_path, secret__py="KEY = 1\n")
    text = "process_docs: !function ..secret.process\ndoc_to_text: !function /etc/passwd.x\n"
    path = write(tmp_path / "own", mine__yaml=text, utils__py="from ..secret import KEY\n")
    assert set(suite_document(path).files) == set()
    path = write(tmp_path / "own", mine__yaml="process_docs: !function utils.process\n")
    assert set(suite_document(path).files) == {"utils.py"}


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        f"a: {'[' * 1000}",
        "",
        "- 1\n- 2\n",
        "file: {a: 1}\n",
        "&a {tasks: [*a]}\n",
        f"doc_to_text: {'x' * 5000}\n",
    ],
)
def test_what_is_no_suite_is_left_to_the_check(tmp_path: Path, text: str) -> None:
    document = suite_document(write(tmp_path, mine__yaml=text))
    assert (document.text, dict(document.files)) == (text, {})


@pytest.mark.parametrize(
    "name", ["../secret.jsonl", "/etc/passwd", "key.pem", "missing.jsonl", "folder.jsonl"]
)
def test_nothing_travels_but_data_and_includes_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.jsonl").write_text("{}")
    folder = tmp_path / "suite"
    (folder / "folder.jsonl").mkdir(parents=True)
    path = write(folder, mine__yaml=f"dataset: {{file: {name}}}\n", key__pem="-")
    assert dict(suite_document(path).files) == {}


@pytest.mark.parametrize("form", ["include: {}\n", "include: [a.yaml, {}]\n", "tasks: [{{include: {}}}]\n"])
@pytest.mark.parametrize("name", ["_default_template_yaml", "shared.yml", "shared.txt"])
def test_what_is_included_travels_whatever_it_is_called(tmp_path: Path, form: str, name: str) -> None:
    path = write(tmp_path, mine__yaml=form.format(name))
    (tmp_path / name).write_text("dataset: {file: rows.jsonl}\n")
    (tmp_path / "rows.jsonl").write_text("{}\n")
    assert set(suite_document(path).files) == {name, "rows.jsonl"}


def test_file_that_is_only_mentioned_stays(tmp_path: Path) -> None:
    path = write(tmp_path, mine__yaml="description: LICENSE\ninclude: ../LICENSE\n", LICENSE="-")
    assert dict(suite_document(path).files) == {}


@pytest.mark.parametrize("text", ["dataset: {file: link.jsonl}\n", "include: link.jsonl\n"])
def test_link_out_of_the_folder_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "secret").write_text("{}")
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(tmp_path / "secret")
    path = write(folder, mine__yaml=text)
    with pytest.raises(Refused, match=r"link\.jsonl is a link out of the suite's folder"):
        suite_document(path)


def test_link_within_the_folder_travels_as_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to("rows.jsonl")
    path = write(tmp_path, mine__yaml="dataset: {file: link.jsonl}\n", rows__jsonl="{}\n")
    assert dict(suite_document(path).files) == {"link.jsonl": b"{}\n"}


@pytest.mark.parametrize("name", ["mine.yaml", "shared.yaml"])
def test_text_that_is_no_utf_8_is_refused_with_its_line(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, mine__yaml="include: shared.yaml\n", shared__yaml="task: mine\n")
    (tmp_path / name).write_bytes("include: shared.yaml\ndoc_to_text: Fähre\n".encode("latin-1"))
    with pytest.raises(Refused, match=rf"{name}:2: this is not UTF-8"):
        suite_document(path)


def test_suite_that_is_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    path = write(tmp_path, mine__yaml="dataset: {file: rows.jsonl}\n", rows__jsonl="x" * (3 * 1024 * 1024))
    with pytest.raises(Refused, match=r"has 3\.0 MiB"):
        suite_document(path)


def test_file_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file"):
        suite_document(tmp_path / "mine.yaml")


PIPELINE = "[{name: last, filter: [{function: take_first}]}]"


@pytest.mark.parametrize(
    "text",
    [PIPELINE, f"filter_list: {PIPELINE}\n", '[{"name": "last", "filter": [{"function": "take_first"}]}]'],
)
def test_filters_are_a_list_a_task_file_or_json(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, mine__yaml=text)
    assert filter_list(path) == [{"name": "last", "filter": [{"function": "take_first"}]}]


def test_an_empty_list_means_no_filters(tmp_path: Path) -> None:
    assert filter_list(write(tmp_path, mine__yaml="[]")) == []


@pytest.mark.parametrize("text", ["task: a\n", "a: [", "[" * 1000, "a: 2026-13-01", "word", ""])
def test_what_holds_no_filters_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused):
        filter_list(write(tmp_path, mine__yaml=text))


@pytest.mark.parametrize("value", [".nan", "2026-01-01", ".inf"])
def test_filters_that_json_cannot_say_are_refused(tmp_path: Path, value: str) -> None:
    path = write(tmp_path, mine__yaml=f"[{{group_select: {value}}}]")
    with pytest.raises(Refused, match="cannot be sent"):
        filters_json(path)


@pytest.mark.parametrize("text", ["{f1}", '{"average": "macro"}', '{"metric": "f1", "average": NaN}'])
def test_metric_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        metric_use(text)
