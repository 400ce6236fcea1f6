"""Sets of task folders: unknown keys are noted, and all folders that cannot be read are named at once."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from services.scheduler.rollouts.tasks.errors import InvalidTask, InvalidTasks
from services.scheduler.rollouts.tasks.file_task_sets import read_path
from services.scheduler.rollouts.tasks.tb_meta_task import read_overrides
from tests.harness.rollout_tasks import harbor_folder, tb_meta_folder, terminal_bench_folder, write


def test_keys_that_are_unknown_are_notes(tmp_path: Path) -> None:
    config = 'schema_version = "9.9"\nnew = 1\n[environment]\nfoo = 1\n[agent]\nbar = 1\n[verifier]\nbaz = 1'
    [harbor] = read_path(harbor_folder(tmp_path / "a", config)).sound()
    assert [note for note in harbor.notes if "unknown" in note] == [
        "schema_version '9.9' is unknown, and read as 1.4",
        "new of task.toml has no effect: the key is unknown",
        "environment.foo of task.toml has no effect: the key is unknown",
        "verifier.baz of task.toml has no effect: the key is unknown",
        "agent.bar of task.toml has no effect: the key is unknown",
    ]
    [terminal_bench] = read_path(terminal_bench_folder(tmp_path / "b", "instruction: x\nname: y")).sound()
    assert "name of task.yaml has no effect: the key is unknown" in terminal_bench.notes
    folder = tb_meta_folder(tmp_path / "c", evaluations={})
    write(folder, {"overrides.json": '{"more": 1}'})
    [rubrics] = read_path(folder).sound()
    assert rubrics.notes == (
        "evaluations of tb_meta.json has no effect: the key is unknown",
        "more of overrides.json has no effect: the key is unknown",
    )


def test_a_dockerfile_is_not_read_where_an_image_is_named(tmp_path: Path) -> None:
    named = harbor_folder(tmp_path / "a", '[environment]\ndocker_image = "x:1"')
    ordered = terminal_bench_folder(tmp_path / "b")
    write(named, {"environment/Dockerfile": "NONSENSE"})
    write(ordered, {"Dockerfile": "NONSENSE"})
    overrides = {"b": read_overrides("b", "order", {"image": "y:1"})}
    assert [task.image for task in read_path(tmp_path, overrides).sound()] == ["x:1", "y:1"]


def test_all_faults_of_a_set_are_read_and_named_at_once(tmp_path: Path) -> None:
    harbor_folder(tmp_path / "a")
    terminal_bench_folder(tmp_path / "b", "parser_name: pytest")
    harbor_folder(tmp_path / "c", "= 1")
    write(tmp_path, {"other/README.md": "not a task"})
    read = read_path(tmp_path)
    assert [task.task_id for task in read.tasks] == ["a"]
    assert [fault.folder for fault in read.faults] == ["b", "c"]
    assert read.others == ("other",)
    with pytest.raises(InvalidTasks, match=r"2 tasks .*task b .*task c ") as refused:
        read.sound()
    assert refused.value.facts["count"] == 2


def test_two_tasks_of_one_name_are_refused(tmp_path: Path) -> None:
    tb_meta_folder(tmp_path / "a")
    tb_meta_folder(tmp_path / "b")
    with pytest.raises(InvalidTask, match="there twice"):
        read_path(tmp_path).sound()


FORMS = (tb_meta_folder, harbor_folder, terminal_bench_folder)


def ids_of(folder: Path, by_folder: Mapping[str, Mapping[str, object]]) -> list[str]:
    overrides = {name: read_overrides(name, "order", values) for name, values in by_folder.items()}
    return [task.task_id for task in read_path(folder, overrides).sound()]


@pytest.mark.parametrize("form", FORMS)
def test_one_task_with_other_variables_is_two_tasks_whatever_their_order_is(
    tmp_path: Path, form: Callable[[Path], Path]
) -> None:
    for number in ("1", "2"):
        form(tmp_path / f"{number}-doubling")
    short, long = (
        {"folder": "doubling", "environment_variables": {"TIMEOUT_SEC": n, "A": "b"}} for n in ("60", "90")
    )
    expected = ["doubling (TIMEOUT_SEC=60)", "doubling (TIMEOUT_SEC=90)"]
    assert ids_of(tmp_path, {"1-doubling": short, "2-doubling": long}) == expected
    assert ids_of(tmp_path, {"1-doubling": long, "2-doubling": short}) == expected[::-1]
    plain = {"folder": "doubling", "environment_variables": {"A": "b"}}
    named = ["doubling", "doubling (TIMEOUT_SEC=90)"]
    assert ids_of(tmp_path, {"1-doubling": plain, "2-doubling": long}) == named
    with pytest.raises(InvalidTask, match="there twice"):
        ids_of(tmp_path, {"1-doubling": short, "2-doubling": dict(short)})


def test_one_task_with_other_instructions_is_two_tasks(tmp_path: Path) -> None:
    for name in "ab":
        tb_meta_folder(tmp_path / name)
    changed, other = ({"lm_instructions": text} for text in ("Do it.", "Do it well."))
    first, second = ids_of(tmp_path, {"a": changed, "b": other})
    assert first.partition(" ")[0] == second.partition(" ")[0] == "doubling"
    assert ids_of(tmp_path, {"a": other, "b": changed}) == [second, first]
    assert ids_of(tmp_path, {"b": changed}) == ["doubling", first]


def test_a_value_that_is_no_line_is_named_by_its_digest(tmp_path: Path) -> None:
    for name in "ab":
        tb_meta_folder(tmp_path / name)
    [_, named] = ids_of(tmp_path, {"b": {"environment_variables": {"A": "x\ny"}}})
    assert re.fullmatch(r"doubling \(A=[0-9a-f]{8}\)", named)
