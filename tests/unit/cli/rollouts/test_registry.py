"""Data sets by their names: registries of Harbor and Terminal-Bench, and clones of what they name."""

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.rollouts.config import read_config
from proctor.cli.rollouts.dataset_options import DatasetOptions
from proctor.cli.rollouts.sources.registry import open_registry
from proctor.client.errors import Refused
from proctor.v1 import rollout_pb2
from tests.harness.rollout_tasks import committed, git, harbor_folder, terminal_bench_folder, write

URL = "https://git.example.org/someone/tasks.git"


def clone(folder: Path) -> str:
    """A repository with two tasks of each form; returns its first commit, which a second one changed."""
    for name in ("one", "two"):
        harbor_folder(folder / "sets" / name)
        terminal_bench_folder(folder / "original-tasks" / name)
    git(folder, "init", "-q", "-b", "main")
    first = committed(folder)
    write(folder, {"sets/one/instruction.md": "Later.\n"})
    committed(folder)
    return first


def harbor(version: str, commit: str, **changes: Any) -> dict[str, Any]:
    tasks = [
        {"name": name, "git_url": URL, "git_commit_id": commit, "path": f"sets/{name}", **changes}
        for name in ("one", "two")
    ]
    return {"name": "small", "version": version, "description": "Two.", "tasks": tasks}


def terminal_bench(commit: str, **changes: Any) -> dict[str, Any]:
    fields = {"name": "core", "version": "0.1", "terminal_bench_version": ">=0.1", "branch": "main"}
    return {**fields, "github_url": URL, "dataset_path": "./original-tasks", "commit_hash": commit, **changes}


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    folder = tmp_path / "mirrors"
    first = clone(folder / "someone" / "tasks")
    datasets = [
        harbor("1.0", first),
        harbor("head", "head"),
        terminal_bench(first),
        terminal_bench("head", version="head", task_id_subset=["two"]),
        terminal_bench(first, version="gone", task_id_subset=["three"]),
    ]
    write(folder / "harbor", {"registry.json": json.dumps(datasets)})
    return folder


def instructions(mirrors: Path, dataset: str, into: Path) -> dict[str, str]:
    into.mkdir(exist_ok=True)
    found = open_registry(str(mirrors / "harbor")).folders(dataset, into)
    return {folder.name: (folder / "instruction.md").read_text() for folder, _ in found}


def test_tasks_of_harbor_are_those_of_their_commit(mirrors: Path, tmp_path: Path) -> None:
    first, later = "Mend twice() in doubling.py.\n", "Later.\n"
    assert instructions(mirrors, "small@1.0", tmp_path / "x") == {"one": first, "two": first}
    assert instructions(mirrors, "small@head", tmp_path / "x") == {"one": later, "two": first}


@pytest.mark.parametrize(("version", "names"), [("0.1", ["one", "two"]), ("head", ["two"])])
def test_tasks_of_terminal_bench_are_in_a_folder(
    mirrors: Path, tmp_path: Path, version: str, names: list[str]
) -> None:
    found = open_registry(str(mirrors / "harbor" / "registry.json")).folders(f"core@{version}", tmp_path)
    assert [folder.name for folder, _ in found] == names
    assert all((folder / "task.yaml").is_file() for folder, _ in found)
    assert all(shown.endswith(f":original-tasks/{folder.name}") for folder, shown in found)


def test_a_registry_of_a_bare_clone_has_tasks_of_its_own(mirrors: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    harbor_folder(folder / "tasks" / "one")
    task = {"name": "one", "git_url": "git@git.example.org:someone/own.git", "path": "tasks/one"}
    write(folder, {"registry.json": json.dumps([{"name": "o", "version": "1", "tasks": [task]}])})
    git(folder, "init", "-q")
    committed(folder)
    git(tmp_path, "clone", "-q", "--bare", str(folder), "own.git")
    found = open_registry(str(tmp_path / "own.git")).folders("o@1", mirrors)
    assert [path.name for path, _ in found] == ["one"]


def test_a_task_without_a_repository_lies_beside_the_registry(tmp_path: Path) -> None:
    harbor_folder(tmp_path / "here" / "one")
    tasks = [{"name": "one", "path": "here/one"}]
    write(tmp_path, {"registry.json": json.dumps([{"name": "o", "version": "1", "tasks": tasks}])})
    assert open_registry(str(tmp_path)).folders("o@1", tmp_path) == [(tmp_path / "here" / "one", "")]


@pytest.mark.parametrize(
    ("dataset", "says"),
    [
        ("small", "name one version of small: small@1.0, small@head"),
        ("small@2", "name one version of small"),
        ("other@1", "no data set other. There are: core, small"),
        ("core@gone", "1 of its tasks, such as three,"),
    ],
)
def test_what_a_registry_does_not_have_is_named(
    mirrors: Path, tmp_path: Path, dataset: str, says: str
) -> None:
    with pytest.raises(Refused, match=says):
        open_registry(str(mirrors / "harbor")).folders(dataset, tmp_path)


def test_clones_that_are_missing_are_named_with_how_to_get_them(mirrors: Path, tmp_path: Path) -> None:
    registry = open_registry(str(mirrors / "harbor"), str(tmp_path / "elsewhere"))
    with pytest.raises(Refused, match=f"git clone {URL} .*elsewhere/someone/tasks"):
        registry.folders("small@1.0", tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("{}", "must be a list"),
        ('[{"name": "a", "version": "1", "tasks": [{"name": "x"}]}]', "not the form of a data set"),
        ('[{"name": "a", "version": "1", "tasks": []}]', "has no tasks"),
        ('[{"name": "a", "version": "1", "tasks": [{"path": "gone"}]}]', "there is no folder"),
    ],
)
def test_a_registry_in_another_form_is_refused(tmp_path: Path, content: str, says: str) -> None:
    write(tmp_path, {"registry.json": content})
    with pytest.raises(Refused, match=says):
        open_registry(str(tmp_path)).folders("a@1", tmp_path)


def test_an_entry_names_a_data_set(mirrors: Path, tmp_path: Path) -> None:
    entry = (
        '[[tasks]]\ndataset = "small@1.0"\nregistry = "mirrors/harbor"\nmodel = "openai/x"\nrollouts = 2\n'
    )
    (tmp_path / "config.toml").write_text(entry + entry.replace("/x", "/y"))
    config = read_config(tmp_path / "config.toml")
    assert config.total == 8
    assert [task.folder.name for task in config.tasks] == ["one", "two"]
    assert config.model_rollouts == {"openai/x": [2, 2], "openai/y": [2, 2]}
    # Written once for both models.
    assert len({entry.folder for entry in config.entries}) == 2
    (tmp_path / "config.toml").write_text(f'{entry}prepared_dir = "a"\n')
    with pytest.raises(Refused, match="dataset and prepared_dir: give one"):
        read_config(tmp_path / "config.toml")
    assert mirrors.is_dir()


def test_options_stand_for_a_configuration(mirrors: Path) -> None:
    registry, models = str(mirrors / "harbor"), ["openai/x", "openai/y"]
    config = DatasetOptions("small@1.0", registry, "", models, 3, "terminus").config()
    assert (config.name, config.total) == ("small", 12)
    assert config.model_rollouts == {model: [3, 3] for model in models}
    assert config.agent.kind == rollout_pb2.AGENT_KIND_TERMINUS
    program = DatasetOptions("small@1.0", registry, "", models, 1, "qwen-code").config().agent
    assert (program.kind, program.template) == (rollout_pb2.AGENT_KIND_COMMAND, "qwen-code")


def test_options_beside_a_configuration_are_noticed() -> None:
    assert not DatasetOptions(model=[]).is_given
    assert DatasetOptions(model=["openai/x"]).is_given
    assert DatasetOptions(rollouts=3).is_given


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (DatasetOptions(), "Name a CONFIG.toml"),
        (DatasetOptions("small@1.0"), "--registry and --model"),
        (DatasetOptions("small@1.0", "nowhere", "", ["m"]), "there is no nowhere"),
        (DatasetOptions("small@1.0", "nowhere", "", ["m"], 1, "vi"), "shell, mini, terminus, aider"),
    ],
)
def test_options_that_do_not_suffice_are_refused(options: DatasetOptions, says: str) -> None:
    with pytest.raises(Refused, match=says):
        options.config()
