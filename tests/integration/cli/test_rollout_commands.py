"""`proctor rollouts check` as a script runs it: sentences, JSON and exit codes, over real sandboxes."""

import json
import shutil
from pathlib import Path

import pytest

from tests.fakes.stack.command_line import CommandLine
from tests.harness.rollout_tasks import committed, git, harbor_folder, terminal_bench_folder, write

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "rollouts"


@pytest.mark.thorough
async def test_a_task_without_a_solution_is_not_sound(tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a")
    (folder / "solution" / "solve.sh").unlink()
    run = CommandLine("", tmp_path / "state")
    reported = await run("rollouts", "check", str(folder), "--json")
    assert reported.code == 1
    assert reported.document["is_sound"] is False
    [task] = reported.document["tasks"]
    assert "has no solution" in task["agents"][0]["problem"]


async def test_a_folder_that_is_no_task_is_refused_in_a_sentence(tmp_path: Path) -> None:
    run = CommandLine("", tmp_path / "state")
    refused = await run("rollouts", "check", str(tmp_path / "nothing"))
    assert (refused.code, refused.out) == (2, "")
    assert "there is no such folder" in refused.err
    (tmp_path / "a").mkdir()
    assert (await run("rollouts", "check", str(tmp_path / "a"))).code == 2


@pytest.mark.thorough
async def test_tasks_of_a_data_set_are_proved(tmp_path: Path) -> None:
    tasks = []
    for folder in ("easy", "hard"):
        harbor_folder(tmp_path / folder / "one")
        tasks.append({"name": folder, "path": f"{folder}/one"})
    dataset = {"name": "small", "version": "1.0", "tasks": tasks}
    write(tmp_path, {"registry.json": json.dumps([dataset])})
    run = CommandLine("", tmp_path / "state")
    checked = ("rollouts", "check", "--dataset", "small@1.0")
    shown = await run(*checked, "--registry", str(tmp_path), "--json")
    assert (shown.code, len(shown.document["tasks"])) == (0, 2), shown.err
    without = await run(*checked)
    assert (without.code, "needs --registry too" in without.err) == (2, True)
    both = await run(*checked, "--registry", str(tmp_path), str(tmp_path / "easy"))
    assert (both.code, "give one of them" in both.err) == (2, True)


async def test_tasks_of_a_repository_are_proved_as_they_are_in_the_revision(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    harbor_folder(repository / "tasks" / "a")
    git(repository, "init", "-q", "-b", "main")
    first = committed(repository)
    # The work tree and the latest commit have another task.
    write(repository / "tasks" / "a", {"solution/solve.sh": "false\n"})
    committed(repository)
    run = CommandLine("", tmp_path / "state")
    checked = ("rollouts", "check", "tasks", "--git", str(repository))
    shown = await run(*checked, "--revision", first)
    assert (shown.code, shown.err) == (0, "")
    assert "its solution: 1.00, expected 1.00" in shown.out
    assert (await run(*checked)).code == 1
    refused = await run(*checked, "--revision", "never")
    assert (refused.code, refused.out) == (2, "")
    assert "has no revision never" in refused.err


async def test_a_revision_without_its_repository_is_refused(tmp_path: Path) -> None:
    harbor_folder(tmp_path / "a")
    run = CommandLine("", tmp_path / "state")
    refused = await run("rollouts", "check", str(tmp_path / "a"), "--revision", "v1")
    assert (refused.code, refused.out) == (2, "")
    assert "--git" in refused.err


async def test_all_folders_that_cannot_be_read_are_shown_and_the_others_are_proved(tmp_path: Path) -> None:
    harbor_folder(tmp_path / "tasks" / "a")
    harbor_folder(tmp_path / "tasks" / "b", "= 1")
    terminal_bench_folder(tmp_path / "tasks" / "c", "parser_name: pytest")
    write(tmp_path / "tasks", {"notes/x.txt": ""})
    run = CommandLine("", tmp_path / "state")
    shown = await run("rollouts", "check", str(tmp_path / "tasks"))
    assert shown.code == 1
    assert "task.yaml in: notes" in shown.out
    assert "not TOML" in shown.out
    assert "1 task: 1 sound, 0 not. 2 cannot be read." in shown.out
    # The one that can be read was proved above.
    shutil.rmtree(tmp_path / "tasks" / "a")
    reported = (await run("rollouts", "check", str(tmp_path / "tasks"), "--json")).document
    assert [fault["folder"] for fault in reported["faults"]] == ["b", "c"]
    assert (reported["is_sound"], reported["without_task"]) == (False, ["notes"])


async def test_the_task_that_init_writes_is_sound(tmp_path: Path) -> None:
    run = CommandLine("", tmp_path / "state")
    written = await run("rollouts", "init", "mine", "--into", str(tmp_path / "tasks"))
    assert (written.code, written.err) == (0, "")
    assert (await run("rollouts", "check", str(tmp_path / "tasks" / "mine"))).code == 0
    again = await run("rollouts", "init", "mine", "--into", str(tmp_path / "tasks"))
    assert again.code == 2
    assert "cannot be written" in again.err
    assert (await run("rollouts", "init", "../x", "--into", str(tmp_path / "tasks"))).code == 2


async def test_the_examples_are_sound(tmp_path: Path) -> None:
    shown = await CommandLine("", tmp_path / "state")("rollouts", "check", str(EXAMPLES))
    assert (shown.code, shown.err) == (0, "")
    assert "its solution: 1.00, expected 1.00" in shown.out
    assert "no work: 0.00, expected less than 1.00" in shown.out
    assert "2 tasks: 2 sound, 0 not." in shown.out
