"""`proctor suites …` as a script sees it, against a real gateway."""

from pathlib import Path

import pytest

from tests.fakes.gateway.gateway_harness import GatewayHarness
from tests.fakes.stack.command_line import CommandLine
from tests.fakes.thorough_cases import first_cases


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("{}\n")
    path = tmp_path / "mine.yaml"
    path.write_text("suite: mine\ntasks:\n  - {task: sentiment, dataset: {file: rows.jsonl}}\n")
    return path


async def test_sound_suite_is_checked_and_added_with_its_files(
    harness: GatewayHarness, proctor: CommandLine, suite: Path
) -> None:
    checked = await proctor("suites", "check", str(suite))
    assert (checked.code, checked.err) == (0, "")
    assert "can be run: suite mine with sentiment" in checked.out
    assert harness.scheduler.suites.kept == []
    added = await proctor("suites", "add", str(suite), "--user", "bob")
    assert "mine, version 1 with rows.jsonl." in added.out
    [request] = harness.scheduler.suites.added
    assert (request.user, dict(request.document.files)) == ("bob", {"rows.jsonl": b"{}\n"})
    assert " run --suite mine --model " in added.out
    assert " run --suite mine@1 --model " in (await proctor("suites", "add", str(suite))).out
    again = await proctor("suites", "add", str(suite), "--json")
    assert (again.document["is_known"], again.document["suite"]["version"]) == (True, 1)


@first_cases(1, "command", ["check", "add"])
async def test_problems_are_named_by_file_and_line(
    harness: GatewayHarness, proctor: CommandLine, suite: Path, command: str
) -> None:
    suite.write_text("suite: mine\nbroken: 1\ntasks: []\nbroken_too: 2\n")
    finished = await proctor("suites", command, str(suite))
    assert (finished.code, finished.out) == (2, "")
    assert finished.err == (
        f"{suite}:2: tasks.0: broken: 1 is not a key\n{suite}:4: tasks.0: broken_too: 2 is not a key\n"
    )
    assert harness.scheduler.suites.kept == []
    reported = await proctor("suites", command, str(suite), "--json")
    assert (reported.code, reported.document["faults"][1]["line"]) == (2, 4)


async def test_version_is_deleted_unless_a_run_used_it(
    harness: GatewayHarness, proctor: CommandLine, suite: Path
) -> None:
    await proctor("suites", "add", str(suite))
    harness.scheduler.suites.in_use = {1}
    refused = await proctor("suites", "delete", "mine", "1")
    assert (refused.code, refused.err) == (2, "A run used this version.\n")
    harness.scheduler.suites.in_use = set()
    deleted = await proctor("suites", "delete", "mine", "1", "--json")
    assert deleted.document == {"suite": "mine", "version": 1}
    unknown = await proctor("suites", "delete", "mine", "9")
    assert (unknown.code, unknown.err) == (4, "No user's suite mine has a version 9.\n")


async def test_sample_is_shown_of_the_suite_that_has_the_task(
    harness: GatewayHarness, proctor: CommandLine
) -> None:
    harness.scheduler.suites.sample.prompt.text = "Review: fine \nSentiment:"
    shown = await proctor("suites", "show", "sentiment", "--row", "3", "--num-fewshot", "2")
    assert "Review: fine \nSentiment:\n" in shown.out
    [asked] = harness.scheduler.suites.shown
    assert (asked.suite, asked.doc_id, asked.num_fewshot) == ("starter", 3, 2)
    assert (await proctor("suites", "show", "nothing")).code == 4
    assert (await proctor("suites", "show", "nothing", "--suite", "starter")).code == 4
    beyond = await proctor("suites", "show", "sentiment", "--row", "99")
    assert (beyond.code, beyond.err) == (4, "The task has 5 rows.\n")


async def test_file_that_is_not_there_is_one_sentence(proctor: CommandLine, tmp_path: Path) -> None:
    finished = await proctor("suites", "check", str(tmp_path / "none.yaml"))
    assert finished.code == 2
    assert "cannot be read: No such file" in finished.err
