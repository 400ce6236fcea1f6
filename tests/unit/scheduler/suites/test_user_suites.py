"""Suites of users: added, found by name and version, deleted, unpacked again; and samples that are shown."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from proctor.values.names.user import Caller
from proctor.values.sample import LAST_PREVIEWED_ROW
from services.common.errors import BelongsToAnother, DomainError, ErrorKind, InvalidParameter
from services.scheduler.suites.add_suite import AddSuite, CheckSuite
from services.scheduler.suites.delete_suite import DeleteSuite
from services.scheduler.suites.errors import (
    FewshotPoolTooSmall,
    InvalidSuiteFile,
    RowNotFound,
    RowsUnavailable,
    SuiteInstalled,
    SuiteInUse,
    SuiteVersionNotFound,
    UnknownSuite,
    UnknownTask,
)
from services.scheduler.suites.file_suite_cache import MAX_CACHED, FileSuiteCache
from services.scheduler.suites.find_suites import FindSuites
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.format.yaml_suite_reader import read_document
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.rows.file_rows import FileRows
from services.scheduler.suites.rows.first_available_source import FirstAvailableSource
from services.scheduler.suites.show_sample import SampleRequest, ShowSample
from services.scheduler.suites.suite import SuiteOwner
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites
from tests.fakes.callers import OPERATOR
from tests.fakes.scheduler.surroundings import SetClock
from tests.fakes.suites.memory_user_suites import InMemoryUserSuites
from tests.fakes.suites.suite_documents import document
from tests.fakes.suites.suite_folder import CHOICE_TASK, write_suite

ANN = SuiteOwner("ann")
TASK = """\
task: sums
version: "1"
dataset: {file: data/rows.jsonl, fewshot_file: data/shown.jsonl}
output_type: generate_until
doc_to_text: "What is {{a}}?"
doc_to_target: "{{b}}"
generation_kwargs: {until: [";"], max_gen_toks: 5}
metric_list: [{metric: exact_match}]
"""
ROWS = b"".join(b'{"a": "%d + 1", "b": %d}\n' % (number, number + 1) for number in range(5))
SUMS = SuiteDocument(TASK, "sums.yaml", {"data/rows.jsonl": ROWS, "data/shown.jsonl": ROWS})
WARMER = SuiteDocument(TASK.replace("What is", "How much is"), "sums.yaml", SUMS.files)


@dataclass
class Stand:
    """One replica; the store is shared."""

    folder: Path
    stored: InMemoryUserSuites

    def __post_init__(self) -> None:
        self.cache = self.folder / "cache"
        installed = YamlInstalledSuites(write_suite(self.folder / "suites", CHOICE_TASK))
        self.all = FindSuites(installed, self.stored, FileSuiteCache(self.cache), read_document)
        self.checking = CheckSuite(read_document, installed)
        self.adding = AddSuite(self.checking, self.stored, SetClock(), lambda: None)
        self.deleting = DeleteSuite(self.stored, installed, SetClock())
        self.showing = ShowSample(self.all, FileRows(), FileSuiteCache)

    async def prompt(self, name: str, row: int = 0) -> str:
        return (await self.showing.show(SampleRequest(name, "sums", row), "ann")).sample.prompt.as_text

    async def preview(self, document: SuiteDocument, row: int = 0) -> str:
        wanted = SampleRequest("", "", row)
        return (await self.showing.show_written(document, wanted, "ann")).sample.prompt.as_text


@pytest.fixture
def harness(tmp_path: Path) -> Stand:
    return Stand(tmp_path, InMemoryUserSuites())


async def test_added_suite_is_found_with_version_and_digest(harness: Stand) -> None:
    added = await harness.adding.add(SUMS, ANN)
    assert (added.suite.name, added.suite.version, added.is_known) == ("sums", 1, False)
    found = await harness.all.suite("sums")
    assert (found.version, found.digest) == (1, SUMS.digest)


async def test_a_suite_that_asks_no_model_is_found_and_in_no_list(harness: Stand) -> None:
    """An order of rollouts adds it to execute the tasks' own solutions."""
    metadata = "rollout: a\nunsafe_code: true\nmetadata: {asks_no_model: true}\n"
    checked = SuiteDocument(TASK.replace("sums", "checked") + metadata, "checked.yaml", SUMS.files)
    for each in (SUMS, checked):
        await harness.adding.add(each, ANN)
    for _ in range(2):
        assert [suite.name for suite in await harness.all.suites()] == ["shades", "sums"]
    assert (await harness.all.suite("checked")).version == 1


async def test_a_sample_of_a_suite_is_shown_before_it_is_added(harness: Stand) -> None:
    assert await harness.preview(WARMER, 2) == "How much is 2 + 1?"
    assert (await harness.stored.latest(), list(harness.cache.glob("*"))) == ([], [])
    with pytest.raises(InvalidSuiteFile, match=r"rows\.jsonl"):
        await harness.preview(SuiteDocument(TASK, "sums.yaml", {"data/shown.jsonl": ROWS}))
    with pytest.raises(RowNotFound):
        await harness.preview(SUMS, 5)


async def test_a_version_is_read_as_it_was_added(harness: Stand) -> None:
    for each in (SUMS, WARMER):
        await harness.adding.add(each, ANN)
    latest, first = await harness.all.document("sums"), await harness.all.document("sums@1")
    assert ((latest.version, latest.document), (first.version, first.document)) == ((2, WARMER), (1, SUMS))
    for name in ("sums@3", "nothing", "a\0"):
        with pytest.raises(UnknownSuite):
            await harness.all.document(name)
    with pytest.raises(SuiteInstalled):
        await harness.all.document("shades")


async def test_new_content_is_a_new_version_and_known_content_keeps_its_own(harness: Stand) -> None:
    for added, version, is_known in ((SUMS, 1, False), (WARMER, 2, False), (SUMS, 1, True)):
        registered = await harness.adding.add(added, ANN)
        assert (registered.suite.version, registered.is_known) == (version, is_known)
    assert await harness.prompt("sums") == "How much is 0 + 1?"
    assert await harness.prompt("sums@1") == "What is 0 + 1?"


@pytest.mark.parametrize(
    "name", ["sums@2", "sums@0", "sums@x", "sums@", "sums@99999999999", "nothing", "a\0"]
)
async def test_a_version_that_is_not_there_is_unknown(harness: Stand, name: str) -> None:
    await harness.adding.add(SUMS, ANN)
    with pytest.raises(UnknownSuite) as refused:
        await harness.all.suite(name)
    assert refused.value.facts["supported"] == "shades, sums"


async def test_of_very_many_suites_a_refusal_names_some_and_counts_the_others(harness: Stand) -> None:
    for number in range(100):
        await harness.stored.add(f"suite_with_a_long_name_{number:03}", SUMS, ANN, SetClock().now())
    with pytest.raises(UnknownSuite) as refused:
        await harness.showing.show(SampleRequest("nothing", "sums", 0), "ann")
    assert "Supported: shades, suite_with_a_long_name_000, " in refused.value.message
    assert refused.value.message.endswith("suite_with_a_long_name_020 and 79 more")


async def test_suites_of_the_installation_come_first_and_their_names_are_taken(harness: Stand) -> None:
    mine = document("suite: shades\ntasks:\n  - {task: a, include: base.yaml}\n", base_yaml=TASK)
    reading = await harness.checking.check(mine, "ann")
    assert (reading.faults[0].line, reading.faults[0].field) == (1, "suite")
    assert "shades is an installed suite" in reading.faults[0].problem
    await harness.stored.add("shades", SUMS, ANN, SetClock().now())
    assert (await harness.all.suite("shades")).version == 0
    assert [suite.name for suite in await harness.all.suites()] == ["shades"]


async def test_a_broken_document_is_refused_with_file_line_and_key(harness: Stand) -> None:
    broken = SuiteDocument(TASK.replace("What is {{a}}", "{{ a "), "sums.yaml", SUMS.files)
    with pytest.raises(InvalidSuiteFile, match=r"sums\.yaml, line 5: doc_to_text: template error") as refused:
        await harness.adding.add(broken, ANN)
    assert refused.value.reason == "INVALID_SUITE_FILE"
    assert not harness.stored.documents


@pytest.mark.parametrize(("user", "file_name"), [("\0", "a"), ("u" * 200, "a"), ("ann", "\0")])
async def test_names_that_cannot_be_stored_are_refused(harness: Stand, user: str, file_name: str) -> None:
    with pytest.raises(InvalidParameter):
        await harness.adding.add(SuiteDocument(TASK, file_name, SUMS.files), SuiteOwner(user))


async def test_lists_hold_the_latest_versions_by_name(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    await harness.adding.add(WARMER, ANN)
    listed = await harness.all.suites()
    assert [(suite.name, suite.version, suite.digest) for suite in listed] == [
        ("shades", 0, ""),
        ("sums", 2, WARMER.digest),
    ]


async def test_a_list_reads_each_document_once_however_many_there_are(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    await harness.all.suites()
    read: list[str] = []
    harness.stored.on_document = read.append
    for number in range(MAX_CACHED + 1):
        named = SuiteDocument(TASK.replace("sums", f"many{number}"), "many.yaml", SUMS.files)
        await harness.stored.add(f"many{number}", named, ANN, SetClock().now())
    lists = [await harness.all.suites() for _ in range(2)]
    assert lists[0] == lists[1]
    assert len(read) == MAX_CACHED + 1
    await harness.deleting.delete("sums", 1, OPERATOR)
    assert "sums" not in {suite.name for suite in await harness.all.suites()}


async def test_a_stored_document_that_is_refused_by_now_is_listed_as_broken(harness: Stand) -> None:
    await harness.stored.add("sums", SuiteDocument("suite: [", "old.yaml"), ANN, SetClock().now())
    shades, broken = await harness.all.suites()
    assert isinstance(broken, BrokenSuite)
    assert (broken.name, broken.version) == ("sums", 1)
    assert "Invalid suite file old.yaml, line " in broken.problem
    assert shades.name == "shades"


async def test_files_that_cannot_be_unpacked_spoil_no_list(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    harness.cache.write_text("a file where the folder should be")
    assert [suite.name for suite in await harness.all.suites()] == ["shades", "sums"]
    with pytest.raises(RowsUnavailable, match=r"the suite's files: they cannot be unpacked \(.+\)"):
        await harness.prompt("sums")


async def test_a_refusal_names_a_file_and_not_where_the_server_keeps_it(harness: Stand) -> None:
    empty = SuiteDocument(
        TASK.replace("rows.jsonl", "rows.csv"), "sums.yaml", {**SUMS.files, "data/rows.csv": b""}
    )
    await harness.adding.add(empty, ANN)
    harness.showing = ShowSample(harness.all, FirstAvailableSource(FileRows(), []), FileSuiteCache)
    with pytest.raises(RowsUnavailable) as refused:
        await harness.prompt("sums")
    reported = "Failed to load SUMS dataset: sums/rows.csv: rows.csv has no header."
    assert refused.value.message == reported


async def test_files_that_were_removed_are_unpacked_again(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    before = await harness.prompt("sums", 3)
    (harness.cache / SUMS.digest / "data" / "rows.jsonl").unlink()
    assert await harness.prompt("sums", 3) == before
    (harness.cache / SUMS.digest / "data" / "rows.jsonl").write_bytes(b"")
    assert await harness.prompt("sums", 3) == before
    shutil.rmtree(harness.cache)
    assert await harness.prompt("sums", 3) == before


async def test_another_replica_unpacks_for_itself(harness: Stand, tmp_path: Path) -> None:
    await harness.adding.add(SUMS, ANN)
    other = Stand(tmp_path / "other", harness.stored)
    assert await other.prompt("sums@1", 4) == "What is 4 + 1?"


async def test_a_version_is_deleted_unless_a_run_used_it(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    harness.stored.used.add(("sums", 1))
    with pytest.raises(SuiteInUse) as refused:
        await harness.deleting.delete("sums", 1, OPERATOR)
    assert refused.value.facts == {"suite": "sums", "version": 1}
    harness.stored.used.clear()
    await harness.deleting.delete("sums", 1, OPERATOR)


async def test_a_version_is_deleted_by_who_added_it_and_by_operators_only(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    await harness.adding.add(WARMER, ANN)
    with pytest.raises(BelongsToAnother, match="Version 1 of the suite sums belongs to ann"):
        await harness.deleting.delete("sums", 1, Caller("bob"))
    await harness.deleting.delete("sums", 1, Caller("ann"))
    await harness.deleting.delete("sums", 2, OPERATOR)
    assert not harness.stored.documents


async def test_what_is_not_there_to_delete_is_reported(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    with pytest.raises(SuiteVersionNotFound) as refused:
        await harness.deleting.delete("sums", 9, OPERATOR)
    assert refused.value.kind is ErrorKind.NOT_FOUND
    reported = "There is no version 9 of sums to delete. Of users' suites there are: sums@1."
    assert refused.value.message == reported
    with pytest.raises(SuiteInstalled) as installed:
        await harness.deleting.delete("shades", 1, OPERATOR)
    assert installed.value.facts == {"suite": "shades"}


async def test_a_number_that_was_deleted_is_not_given_again(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    await harness.deleting.delete("sums", 1, OPERATOR)
    assert (await harness.adding.add(WARMER, ANN)).suite.version == 2


async def test_a_sample_is_shown_as_a_run_would_ask_it(harness: Stand) -> None:
    await harness.adding.add(SUMS, ANN)
    shown = await harness.showing.show(SampleRequest("sums", "sums", 3, num_fewshot=1), "ann")
    example, question = shown.sample.prompt.as_text.split("\n\n")
    assert question == "What is 3 + 1?"
    assert example.startswith("What is ")
    assert example != "What is 3 + 1? 4"
    assert shown.sample.target.texts == ("4",)
    assert shown.row_source == "sums/rows.jsonl"
    assert shown.row_source_revision.startswith("sha256:")
    assert not shown.is_stand_in


@pytest.mark.parametrize(
    ("wanted", "refusal"),
    [
        (SampleRequest("sums", "sums", 5), RowNotFound),
        (SampleRequest("sums", "sums", -1), InvalidParameter),
        (SampleRequest("sums", "sums", LAST_PREVIEWED_ROW + 1), InvalidParameter),
        (SampleRequest("sums", "sums", 0, num_fewshot=101), InvalidParameter),
        (SampleRequest("sums", "sums", 0, num_fewshot=6), FewshotPoolTooSmall),
        (SampleRequest("sums", "nothing", 0), UnknownTask),
        (SampleRequest("nothing", "sums", 0), UnknownSuite),
    ],
)
async def test_a_sample_that_is_not_there_is_refused(
    harness: Stand, wanted: SampleRequest, refusal: type[DomainError]
) -> None:
    await harness.adding.add(SUMS, ANN)
    with pytest.raises(refusal) as refused:
        await harness.showing.show(wanted, "ann")
    if refusal is RowNotFound:
        assert refused.value.facts == {"task": "sums", "doc_id": 5, "rows": 5}
