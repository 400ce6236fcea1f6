"""The configuration of rollouts: what it says, and what is refused of it in a sentence."""

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from proctor.cli.rollouts.archive import order_of, packed
from proctor.cli.rollouts.config import read_config
from proctor.client.errors import Refused
from proctor.v1 import rollout_pb2, rollout_service_pb2
from tests.harness.rollout_tasks import tb_meta_folder, write

ENTRY = '[[tasks]]\nprepared_dir = "a"\nmodel = "openai/x"\n'


def written(folder: Path, text: str) -> Path:
    tb_meta_folder(folder / "a")
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


def test_models_and_rollouts_of_entries_are_over_one_set_of_tasks(tmp_path: Path) -> None:
    tb_meta_folder(tmp_path / "b")
    other = ENTRY.replace('"a"', '"b"')
    text = f"{ENTRY}rollouts = 2\n{other}rollouts = 2\n{ENTRY.replace('/x', '/y')}[agent]\nmax_steps = 7\n"
    config = read_config(written(tmp_path, text))
    assert (config.name, config.total) == ("config", 5)
    assert [task.folder.name for task in config.tasks] == ["a", "b"]
    assert config.model_rollouts == {"openai/x": [2, 2], "openai/y": [1, 0]}
    assert (config.agent.max_steps, config.agent.kind) == (7, rollout_pb2.AGENT_KIND_SHELL)


def test_a_byte_order_mark_is_no_part_of_the_files(tmp_path: Path) -> None:
    path = written(tmp_path, f"\ufeff{ENTRY}overrides = 'more.json'\n")
    write(tmp_path, {"more.json": "\ufeff{}"})
    assert packed(read_config(path).entries).archive


def test_a_sweep_is_a_task_for_each_of_its_values(tmp_path: Path) -> None:
    variables = "environment_variables = { TIMEOUT_SEC = '%d' }\n"
    text = "".join(f"{ENTRY}{variables % seconds}" for seconds in (60, 90, 60))
    config = read_config(written(tmp_path, text))
    assert [task.variables for task in config.tasks] == [{"TIMEOUT_SEC": "60"}, {"TIMEOUT_SEC": "90"}]
    # An entry that is there twice orders twice as many rollouts.
    assert config.model_rollouts == {"openai/x": [2, 1]}


def test_an_order_names_the_tasks_of_models_that_have_others(tmp_path: Path) -> None:
    tb_meta_folder(tmp_path / "b")
    other = ENTRY.replace('"a"', '"b"')
    text = f"{ENTRY}rollouts = 3\n{other}rollouts = 3\n{other.replace('/x', '/y')}rollouts = 5\n"
    tasks = rollout_service_pb2.UploadTasksResponse(tasks_digest="digest", task_ids=["one", "two"])
    order = order_of(read_config(written(tmp_path, text)), ["openai/x", "openai/y"], tasks, "")
    assert (order.rollouts, list(order.models)) == (3, ["openai/x", "openai/y"])
    assert {model: dict(each.rollouts) for model, each in order.model_tasks.items()} == {
        "openai/y": {"two": 5}
    }


def test_variables_of_an_entry_win_over_its_file_of_overrides(tmp_path: Path) -> None:
    keys = "overrides = 'more.json'\napply_overrides = false\nenvironment_variables = { A = 'entry' }\n"
    keys += "image = 'python:3.13'\n"
    path = written(tmp_path, ENTRY + keys)
    more = {"environment_variables": {"A": "file", "B": "file"}, "lm_instructions": "Do it."}
    write(tmp_path, {"more.json": json.dumps(more), "a/overrides.json": "{}", "a/.git/config": ""})
    config = read_config(path)
    tasks = packed(config.entries)
    [(folder, overrides)] = tasks.overrides_json.items()
    assert json.loads(overrides) == {
        "environment_variables": {"A": "entry", "B": "file"},
        "lm_instructions": "Do it.",
        "image": "python:3.13",
        "folder": "a",
    }
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(tasks.archive))) as tar:
        names = set(tar.getnames())
    assert f"{folder}/tb_meta.json" in names
    # The task's own overrides do not apply, and the history of git is not sent.
    assert not any("overrides.json" in name or ".git" in name for name in names)


def test_a_folder_of_task_folders_is_an_entry_for_each_task(tmp_path: Path) -> None:
    for name in ("b", "a"):
        tb_meta_folder(tmp_path / "many" / name)
    write(tmp_path / "many", {"README.md": "", "shared/data.txt": ""})
    config = read_config(written(tmp_path, ENTRY.replace('"a"', '"many"') + "rollouts = 2\n"))
    assert [entry.folder.name for entry in config.entries] == ["a", "b"]
    assert config.total == 4
    assert list(packed(config.tasks).overrides_json) == ["1-a", "2-b"]


@pytest.mark.parametrize(
    ("words", "place"),
    [("", rollout_pb2.VERIFICATION_PLACE_FRESH), ("= 'same'", rollout_pb2.VERIFICATION_PLACE_SAME)],
)
def test_tests_judge_in_a_fresh_sandbox_or_in_the_same(tmp_path: Path, words: str, place: int) -> None:
    agent = f"[agent]\nverification {words}" if words else ""
    assert read_config(written(tmp_path, f"{ENTRY}{agent}")).agent.verification == place


def test_a_folder_without_a_task_is_left_to_the_reader_of_tasks_to_refuse(tmp_path: Path) -> None:
    write(tmp_path / "none", {"README.md": ""})
    [entry] = read_config(written(tmp_path, ENTRY.replace('"a"', '"none"'))).entries
    assert entry.folder.name == "none"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("name = 'x'", "tasks is missing"),
        (f"{ENTRY}unknown = 1", "no key 'unknown'"),
        ('[[tasks]]\nprepared_dir = "a"', "model is missing"),
        ('[[tasks]]\nprepared_dir = "never"\nmodel = "m"', "there is no never"),
        (f"{ENTRY}rollouts = -1", "rollouts must be a number"),
        (f"{ENTRY}rollouts = 0", "rollouts must be a number of at least 1"),
        (f"{ENTRY}[agent]\nkind = 'codex'", "agent.kind is 'codex'"),
        (f"{ENTRY}[agent]\nverification = 'later'", "is 'later', but must be fresh or same"),
        (f"{ENTRY}[agent]\nsteps = 1", "agent"),
        (f"{ENTRY}[params]\nheat = 1", "params"),
        ("= 1", "not TOML"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(Refused, match=says):
        read_config(written(tmp_path, text))
