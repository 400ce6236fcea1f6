"""Folders of tasks are read in three forms; what is not supported is refused by its name."""

import gzip
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from proctor.values.rollout import RolloutTask, TaskArtifact, VerifierKind
from services.scheduler.rollouts.tasks.errors import (
    InvalidTask,
    NoTasks,
    TaskError,
    UnsupportedTask,
)
from services.scheduler.rollouts.tasks.file_task_sets import read_path
from services.scheduler.rollouts.tasks.tb_meta_task import Overrides, read_overrides
from tests.harness.rollout_tasks import (
    WRONG,
    harbor_folder,
    steps_folder,
    tb_meta,
    tb_meta_folder,
    terminal_bench_folder,
    write,
)


def files_of(bundle: bytes) -> dict[str, str]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(bundle))) as tar:
        files = {member.name: tar.extractfile(member) for member in tar}
        return {name: file.read().decode() for name, file in files.items() if file}


def only_task(folder: Path) -> RolloutTask:
    [task] = read_path(folder).sound()
    return task


def test_a_folder_with_rubrics(tmp_path: Path) -> None:
    [task] = read_path(tb_meta_folder(tmp_path / "a")).sound()
    assert (task.task_id, task.verifier, task.cwd) == ("doubling", VerifierKind.RUBRICS, "/app/repo")
    assert files_of(task.workspace) == {
        "LM_INSTRUCTIONS.md": "Mend twice() in doubling.py.",
        "repo/doubling.py": WRONG,
    }
    assert [(rubric.rubric_id, rubric.weight, rubric.scripts) for rubric in task.rubrics] == [
        ("right", 3.0, ("tests/test_twice.py",)),
        ("there", 1.0, ("tests/test_there.py",)),
    ]
    assert set(files_of(task.tests)) == {"tests/test_twice.py", "tests/test_there.py"}


def test_the_overrides_of_a_task_win_over_those_of_the_order(tmp_path: Path) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    own = {
        "remove_repo_paths": ["*.log", "old/"],
        "inject_files": [{"path": "deep/new.py", "content": "own"}],
        "environment_variables": {"TIMEOUT_SEC": "60", "A": "own"},
    }
    write(
        folder,
        {
            "overrides.json": json.dumps(own),
            "overlay_repo_files/x/a.log": "gone",
            "overlay_repo_files/old/b.py": "gone",
            "overlay_repo_files/older.py": "kept",
        },
    )
    ordered = Overrides(
        injected={"deep/new.py": "ordered", "other.py": "ordered"},
        instructions="Ordered.",
        variables={"A": "ordered", "B": "ordered"},
    )
    [task] = read_path(folder, {"a": ordered}).sound()
    files = files_of(task.workspace)
    assert {name for name in files if name.startswith("repo/")} == {
        "repo/doubling.py",
        "repo/older.py",
        "repo/deep/new.py",
        "repo/other.py",
    }
    assert files["repo/deep/new.py"] == "own"
    assert (task.instruction, files["LM_INSTRUCTIONS.md"]) == ("Ordered.", "Ordered.")
    assert (task.environment, task.limits.agent_seconds) == ({"A": "own", "B": "ordered"}, 60.0)


def test_a_folder_of_harbor(tmp_path: Path) -> None:
    config = """
version = "1.1"
[task]
name = "org/doubling"
[agent]
timeout_sec = 90
[verifier]
timeout_sec = 30
env = { TOKEN = "${TOKEN:-none}", KEY = "${KEY}" }
[environment]
cpus = 2
memory = "3G"
network_mode = "public"
"""
    [task] = read_path(harbor_folder(tmp_path / "a", config)).sound()
    assert (task.task_id, task.verifier, task.workdir) == ("org/doubling", VerifierKind.REWARD_FILE, "/app")
    assert (task.limits.agent_seconds, task.limits.verifier_seconds, task.limits.cpus) == (90, 30, 2)
    assert (task.limits.memory_bytes, task.verifier_environment) == (3 * 1024**3, {"TOKEN": "none"})
    assert files_of(task.workspace) == {"doubling.py": WRONG}
    assert set(files_of(task.tests)) == {"test.sh", "test_twice.py"}
    assert "the task asks for a network, and its sandbox has none" in task.notes
    assert "verifier.env.KEY of task.toml is not set: it takes KEY from the host" in task.notes


def test_a_working_folder_of_the_system_is_refused(tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", '[environment]\nworkdir = "/usr/src"')
    (folder / "environment" / "Dockerfile").unlink()
    with pytest.raises(InvalidTask, match="/usr/src"):
        read_path(folder).sound()


def test_a_folder_of_terminal_bench(tmp_path: Path) -> None:
    [task] = read_path(terminal_bench_folder(tmp_path / "a")).sound()
    assert (task.task_id, task.verifier) == ("a", VerifierKind.PYTEST_SUMMARY)
    assert task.environment == {"TEST_DIR": "/tests", "A": "1", "B": "2 3"}
    assert files_of(task.workspace) == {"doubling.py": WRONG}
    assert set(files_of(task.tests)) == {"run-tests.sh", "test_twice.py"}
    assert set(files_of(task.solution)) == {"solve.sh"}


def test_a_set_of_tasks_is_a_folder_or_an_archive_and_reads_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    tb_meta_folder(folder / "b")
    harbor_folder(folder / "a")
    terminal_bench_folder(folder / "c")
    write(folder, {"README.md": "not a task", "notes/x.txt": "not a task", "a/__pycache__/x.pyc": "not kept"})
    archive = tmp_path / "set.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, "set")
    tasks = read_path(folder).sound()
    assert [task.task_id for task in tasks] == ["a", "doubling", "c"]
    assert read_path(archive).sound() == tasks


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        read_path(tb_meta_folder(tmp_path / "a")).sound(),
        read_path(tb_meta_folder(tmp_path / "b")).sound(),
    )
    assert first == second


REFUSED_META: Mapping[str, tuple[Mapping[str, object], type[TaskError], str]] = {
    "a task that is not finished": (
        {"evaluation": {"content_rubric": "todo"}},
        UnsupportedTask,
        "evaluation.content_rubric",
    ),
    "a repository that would be fetched": (
        {"repo": {"git_url": "https://example.org/x.git"}},
        UnsupportedTask,
        "repo.git_url",
    ),
    "no rubric that can score": (
        {"evaluation": {"rubrics": [{"id": "a", "weight": 1}], "test_scripts": []}},
        InvalidTask,
        "at least one rubric",
    ),
    "a script of another rubric": (
        {
            "evaluation": {
                "rubrics": [{"id": "a", "weight": 1}],
                "test_scripts": [
                    {"path": "t.py", "rubric_id": "a", "content": "x"},
                    {"path": "u.py", "rubric_id": "b", "content": "x"},
                ],
            }
        },
        InvalidTask,
        "unknown rubric 'b'",
    ),
    "a negative weight": (
        {"evaluation": {"rubrics": [{"id": "a", "weight": -1}]}},
        InvalidTask,
        "evaluation.rubrics.0.weight",
    ),
    "a script that leaves the repository": (
        {"evaluation": {"test_scripts": [{"path": "../t.py", "rubric_id": "a", "content": "x"}]}},
        InvalidTask,
        "leaves its folder",
    ),
}


@pytest.mark.parametrize("name", REFUSED_META)
def test_what_cannot_be_examined_is_refused_by_name(tmp_path: Path, name: str) -> None:
    changes, error, says = REFUSED_META[name]
    folder = tb_meta_folder(tmp_path / "a", **changes)
    with pytest.raises(error, match=says.replace(".", r"\.")):
        read_path(folder).sound()


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", "a\\b", "a//b", ""])
def test_overrides_stay_in_the_repository(tmp_path: Path, path: str) -> None:
    folder = tb_meta_folder(tmp_path / "a")
    for overrides in ({"remove_repo_paths": [path]}, {"inject_files": [{"path": path, "content": ""}]}):
        (folder / "overrides.json").write_text(json.dumps(overrides))
        with pytest.raises(InvalidTask, match=r"overrides\.json"):
            read_path(folder).sound()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('[[steps]]\nname = "a/b"', "name of a folder"),
        ('[[steps]]\nname = "a"', "steps/a/instruction.md"),
        ('[[verifier.collect]]\ncommand = "x"', "verifier.collect"),
        ('[verifier]\nenvironment_mode = "own"', "is unknown"),
        ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\ncpus = 1', "shared has no"),
        ("[verifier.environment]\ngpus = 1", "verifier.environment.gpus"),
        ('multi_step_reward_strategy = "best"', "is unknown"),
        (
            'artifacts = ["/elsewhere/x"]\n[verifier]\nenvironment_mode = "separate"',
            "outside of the working folder",
        ),
        (
            'artifacts = [{ source = "a", service = "db" }]\n[verifier]\nenvironment_mode = "separate"',
            "service",
        ),
        ('artifacts = ["/logs/artifacts/x"]\n[verifier]\nenvironment_mode = "separate"', "/logs/artifacts"),
        ('artifacts = ["../x"]\n[verifier]\nenvironment_mode = "separate"', "must have no"),
        ("[environment]\ngpus = 1", "gpus"),
        ('[environment]\nos = "windows"', "windows"),
        ('[[environment.mcp_servers]]\nname = "a"', "mcp_servers"),
        ('[environment]\nmemory = "much"', "must be a size"),
        ('[environment]\nworkdir = "app"', "absolute path"),
        ('[environment]\nworkdir = "/usr/lib"', "/usr/lib"),
        ("[agent]\ntimeout_sec = -1", "at least 1"),
        ("= 1", "not TOML"),
    ],
)
def test_what_of_harbor_is_not_supported_is_refused_by_name(tmp_path: Path, config: str, says: str) -> None:
    with pytest.raises(TaskError, match=says):
        read_path(harbor_folder(tmp_path / "a", config)).sound()


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("instruction: x\nparser_name: swelancer", "swelancer"),
        ("parser_name: pytest", "instruction"),
        ("instruction: [x]", "must be a text"),
        ("a: &a [x]\nb: *a", "not YAML"),
        ("- x", "YAML mapping"),
    ],
)
def test_what_of_terminal_bench_is_not_supported_is_refused_by_name(
    tmp_path: Path, config: str, says: str
) -> None:
    with pytest.raises(TaskError, match=says):
        read_path(terminal_bench_folder(tmp_path / "a", config)).sound()


def test_tests_that_ask_for_the_shell_of_the_agent_are_noted(tmp_path: Path) -> None:
    config = "instruction: Mend it.\nrun_tests_in_same_shell: true\n"
    [task] = read_path(terminal_bench_folder(tmp_path / "a", config)).sound()
    assert [note for note in task.notes if note.startswith("run_tests_in_same_shell has no effect")]


def test_several_containers_are_refused(tmp_path: Path) -> None:
    folder = terminal_bench_folder(tmp_path / "a")
    (folder / "docker-compose.yaml").write_text("services: {client: {}, database: {}}")
    with pytest.raises(UnsupportedTask, match="client, database"):
        read_path(folder).sound()


def test_a_folder_without_a_task_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"a/README.md": "", "b/README.md": ""})
    with pytest.raises(NoTasks):
        read_path(tmp_path).sound()


def test_a_test_script_may_be_a_file_of_the_folder(tmp_path: Path) -> None:
    meta = tb_meta()
    scripts = [{"path": "tests/test_twice.py", "rubric_id": "right"}]
    evaluation = {"rubrics": [{"id": "right", "weight": 1}], "test_scripts": scripts}
    folder = tb_meta_folder(tmp_path / "a", **{**meta, "evaluation": evaluation})
    with pytest.raises(InvalidTask, match=r"evaluation/tests/test_twice\.py: the file is missing"):
        read_path(folder).sound()
    write(folder, {"evaluation/tests/test_twice.py": "def test(): pass\n"})
    [task] = read_path(folder).sound()
    assert files_of(task.tests) == {"tests/test_twice.py": "def test(): pass\n"}


def test_the_image_of_a_task_is_that_of_its_file_or_of_the_order(tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", '[environment]\ndocker_image = "registry.example:5000/x/y:1.2"')
    [task] = read_path(folder).sound()
    # What the image would be built of says nothing any more.
    assert (task.image, task.notes) == ("registry.example:5000/x/y:1.2", ())
    overrides = {"a": read_overrides("a", "order", {"image": "python:3.13"})}
    [overridden] = read_path(tmp_path, overrides).sound()
    assert overridden.image == "python:3.13"
    tb_meta_folder(tmp_path / "b")
    (tmp_path / "b" / "overrides.json").write_text('{"image": "own:1"}')
    overrides["b"] = overrides["a"]
    assert [each.image for each in read_path(tmp_path, overrides).sound()] == ["python:3.13", "own:1"]


@pytest.mark.parametrize("image", ["--privileged", "a b", "/etc", "x" * 300])
def test_an_image_that_is_no_name_is_refused(tmp_path: Path, image: str) -> None:
    with pytest.raises(InvalidTask, match="docker_image"):
        read_path(harbor_folder(tmp_path / "a", f'[environment]\ndocker_image = "{image}"')).sound()


TWO_STEPS = {
    "first": """min_reward = 0.5
[steps.verifier]
environment_mode = "shared"
[steps.agent]
timeout_sec = 60""",
    "second": """min_reward = { a = 1 }
artifacts = ["out"]
[steps.verifier]
environment_mode = "separate"
timeout_sec = 5""",
}


def test_steps_have_times_rewards_and_files_of_their_own(tmp_path: Path) -> None:
    folder = steps_folder(tmp_path / "a", 'multi_step_reward_strategy = "final"', **TWO_STEPS)
    task = only_task(folder)
    first, second = task.steps
    assert (first.name, first.agent_seconds, first.verifier_seconds) == ("first", 60.0, 600.0)
    assert (first.min_rewards, second.min_rewards) == ({"reward": 0.5}, {"a": 1.0})
    assert (first.artifacts, second.artifacts) == ((), (TaskArtifact("/app/out"),))
    assert (first.has_own_files, second.has_own_files, second.verifier_seconds) == (False, True, 5.0)
    assert task.scores_last_step
    assert task.limits.agent_seconds == 60.0 + 1800.0
    assert set(files_of(task.tests)) == {
        "shared/test.sh",
        "steps/first/test_step.py",
        "steps/second/test_step.py",
        "workdirs/second/setup.sh",
        "workdirs/second/given.txt",
    }
    assert set(files_of(task.solution)) == {"steps/first/solve.sh", "steps/second/solve.sh"}
    assert "processes end with their step" in task.notes
    assert task.instruction.startswith("## first\n\nMend twice()")


def test_what_of_steps_is_not_supported_is_refused_by_name(tmp_path: Path) -> None:
    image = '[steps.verifier.environment]\ndocker_image = "x"'
    with pytest.raises(UnsupportedTask, match="another image for the step first"):
        only_task(steps_folder(tmp_path / "a", first=image))
    with pytest.raises(InvalidTask, match="there twice"):
        only_task(steps_folder(tmp_path / "b", second='[[steps]]\nname = "first"'))
    context = steps_folder(tmp_path / "c")
    write(context, {"steps/second/trajectory.json": "{}"})
    with pytest.raises(UnsupportedTask, match=r"steps/second/trajectory\.json"):
        only_task(context)
    untested = steps_folder(tmp_path / "d")
    (untested / "tests" / "test.sh").unlink()
    with pytest.raises(InvalidTask, match=r"test\.sh is missing, and in tests too"):
        only_task(untested)


def test_a_verifier_of_another_image_holds_the_tests_itself(tmp_path: Path) -> None:
    config = 'artifacts = ["out"]\n[verifier.environment]\ndocker_image = "tests:1"\ncpus = 1'
    task = only_task(harbor_folder(tmp_path / "a", config))
    assert (task.verifier_image, task.tests, task.has_own_files) == ("tests:1", b"", True)
    assert task.artifacts == (TaskArtifact("/app/out"),)
    assert "verifier.environment has no effect but by its image" in task.notes


def test_a_dockerfile_of_tests_says_where_they_are(tmp_path: Path) -> None:
    folder = harbor_folder(tmp_path / "a", '[verifier]\nenvironment_mode = "separate"')
    steps = "ENV A=1\nRUN pip install y && apt install z\nCOPY test.sh test_twice.py /tests/\n"
    write(folder, {"tests/Dockerfile": f"FROM x\n{steps}"})
    task = only_task(folder)
    assert set(files_of(task.tests)) == {"test.sh", "test_twice.py"}
    assert task.verifier_environment == {"A": "1"}
    assert any("tests/Dockerfile: of RUN these are not executed: apt install z" in n for n in task.notes)
    assert task.packages == ("y",)
    assert "tests/Dockerfile: packages that RUN installs are there for the agent too" in task.notes
