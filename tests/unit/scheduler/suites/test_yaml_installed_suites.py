"""Suite files: valid ones load; an invalid one is reported with file, line and key and breaks only itself.
The suites of a folder, read again when their files change.
"""

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from proctor.values.scoring import OutputType
from services.common.errors import InvalidSetting
from services.scheduler.suites.errors import InvalidSuiteFile, UnknownSuite, UnknownTask
from services.scheduler.suites.ports import BrokenSuite
from services.scheduler.suites.suite import FewshotRule, FewshotSampler, Generation
from services.scheduler.suites.yaml_installed_suites import YamlInstalledSuites, load_suites, reload_suites
from tests.fakes.suites.suite_folder import CHOICE_TASK, load_one, without, write_suite
from tests.harness.keyed_suite import SUITE, write_keyed_suite

SUITES = Path(__file__).parents[4] / "suites"

GENERATION = {
    "output_type": "generate_until",
    "doc_to_choice": None,
    "metric_list": [{"metric": "exact_match"}],
}


def test_the_suites_of_the_repository_are_valid() -> None:
    registry = load_suites(SUITES)
    assert registry.broken == {}
    assert {"glue", "starter"} <= set(registry.names())


def test_the_schema_of_suites_is_a_schema() -> None:
    Draft202012Validator.check_schema(json.loads((SUITES / "task.schema.json").read_text()))


def test_an_unknown_suite_is_reported_with_those_there_are(tmp_path: Path) -> None:
    registry = load_suites(write_suite(tmp_path, CHOICE_TASK))
    with pytest.raises(UnknownSuite) as refused:
        registry.suite("nope")
    assert refused.value.facts == {"suite": "nope", "supported": "shades"}


def test_an_unknown_task_is_reported_with_those_there_are(tmp_path: Path) -> None:
    suite = load_suites(write_suite(tmp_path, CHOICE_TASK)).suite("shades")
    with pytest.raises(UnknownTask) as refused:
        suite.task("nope")
    assert refused.value.facts == {"suite": "shades", "task": "nope", "supported": "colours"}


def test_a_broken_file_breaks_its_own_suite_only(tmp_path: Path) -> None:
    write_suite(tmp_path, CHOICE_TASK)
    write_suite(tmp_path, without(CHOICE_TASK, "doc_to_text"), suite="broken")
    registry = load_suites(tmp_path)
    assert registry.names() == ["shades"]
    with pytest.raises(InvalidSuiteFile, match="doc_to_text: is missing"):
        registry.suite("broken")


def invalid(folder: Path, **changes: object) -> InvalidSuiteFile:
    with pytest.raises(InvalidSuiteFile) as raised:
        load_one(folder, **changes)
    return raised.value


def test_a_key_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    problem = "doc_to_txt: there is no such key; did you mean doc_to_text?"
    assert problem in str(invalid(tmp_path, doc_to_txt="x"))


def test_a_wrong_value_is_reported_with_line_and_key(tmp_path: Path) -> None:
    error = invalid(tmp_path, metric_list=[{"metric": "acc"}, {"metric": "beauty"}])
    assert error.field == "metric_list.1.metric"
    assert f"{error.file}, line {error.line}: metric_list.1.metric: 'beauty' is none of" in str(error)
    assert error.line == next(
        number for number, line in enumerate(error.file.read_text().splitlines(), 1) if "beauty" in line
    )


def test_a_template_error_is_reported_with_its_key(tmp_path: Path) -> None:
    error = invalid(tmp_path, doc_to_text="{{ thing ")
    assert error.field == "doc_to_text"
    assert "template error: line 1 of the template" in str(error)


def test_yaml_that_cannot_be_read_is_reported_with_its_line(tmp_path: Path) -> None:
    write_suite(tmp_path, CHOICE_TASK)
    (tmp_path / "shades" / "colours.yaml").write_text("task: colours\nversion: [1\n")
    error = load_suites(tmp_path).broken["shades"]
    assert error.line == 3
    assert "not valid YAML" in str(error)


def test_a_task_without_its_file_is_reported(tmp_path: Path) -> None:
    write_suite(tmp_path, CHOICE_TASK)
    (tmp_path / "shades" / "colours.yaml").unlink()
    assert "cannot be read" in str(load_suites(tmp_path).broken["shades"])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"task": "other"}, "cannot be read"),
        ({"doc_to_choice": None}, "multiple_choice needs doc_to_choice"),
        ({"generation_kwargs": {"until": "."}}, "only generate_until has it"),
        ({**GENERATION, "metric_list": [{"metric": "mcc"}]}, "mcc does not fit output_type generate_until"),
        ({"dataset": {"id": "a/b"}}, "'split' is a dependency of 'id'"),
        ({"dataset": {"id": "a/b", "split": "s", "file": "x"}}, "exactly one of id, file is needed"),
        ({"doc_to_choice": []}, "non-empty"),
        ({"num_fewshot": -1}, "less than the minimum of 0"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    if "task" in changes:
        write_suite(tmp_path, CHOICE_TASK)
        suite_file = tmp_path / "shades" / "suite.yaml"
        suite_file.write_text(yaml.safe_dump({"suite": "shades", "tasks": [changes["task"]]}))
        assert problem in str(load_suites(tmp_path).broken["shades"])
    else:
        assert problem in str(invalid(tmp_path, **changes))


@pytest.mark.parametrize(
    "step",
    [
        {"function": "regex"},
        {"function": "regex", "regex_pattern": "("},
        {"function": "regex", "regex_pattern": "a", "fallback": "A"},
        {"function": "lowercase", "group_select": 1},
        {"function": "guess"},
    ],
)
def test_a_filter_that_cannot_work_or_gives_a_default_label_is_refused(
    tmp_path: Path, step: dict[str, object]
) -> None:
    assert invalid(tmp_path, **GENERATION, filter_list=[{"name": "a", "filter": [step]}]).field.startswith(
        "filter_list.0.filter.0"
    )


def test_defaults_are_those_of_lm_eval(tmp_path: Path) -> None:
    task = load_one(tmp_path)
    assert task.scoring.output_type is OutputType.MULTIPLE_CHOICE
    assert task.scoring.target_delimiter == " "
    assert task.fewshot == FewshotRule(
        FewshotSampler.DEFAULT, drops_document=True, num_fewshot=0, delimiter="\n\n"
    )
    assert task.generation is None
    assert load_one(tmp_path, **GENERATION).generation == Generation(until=("\n\n",), max_tokens=256)


def test_generation_options_are_read(tmp_path: Path) -> None:
    options = {"until": ["\n", "."], "max_gen_toks": 8, "temperature": 0.5, "top_p": 0.9, "do_sample": True}
    task = load_one(tmp_path, **GENERATION, generation_kwargs=options)
    assert task.generation == Generation(until=("\n", "."), max_tokens=8, temperature=0.5, top_p=0.9)


def test_files_are_found_beside_the_suite(tmp_path: Path) -> None:
    task = load_one(tmp_path, dataset={"file": "data/a.jsonl", "fewshot_file": "data/b.jsonl"})
    assert task.rows.file == tmp_path / "shades" / "data" / "a.jsonl"
    assert task.fewshot_rows is not None
    assert task.fewshot_rows.file == tmp_path / "shades" / "data" / "b.jsonl"


def test_suites_are_read_again_only_when_a_file_changed(tmp_path: Path) -> None:
    registry = load_suites(write_suite(tmp_path, CHOICE_TASK))
    assert reload_suites(registry) is registry
    file = tmp_path / "shades" / "colours.yaml"
    file.write_text(file.read_text().replace("{{thing}} is", "{{thing}} looks"))
    os.utime(file, ns=(1, 1))
    changed = reload_suites(registry)
    assert changed.suite("shades").tasks[0].templates.text.source == "{{thing}} looks"
    assert (
        changed.suite("shades").tasks[0].definition_digest
        != registry.suite("shades").tasks[0].definition_digest
    )


LM_EVAL_TASK = """\
task: hues
include: _base
dataset_path: org/colours
validation_split: validation
doc_to_target: "{{name}}"
"""


def test_a_file_of_lm_eval_in_the_folder_is_a_suite_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "hues.yaml").write_text(LM_EVAL_TASK)
    (tmp_path / "_base").write_text("doc_to_text: It is\n")
    registry = load_suites(tmp_path)
    assert registry.names() == ["hues"]
    assert [group.group for group in registry.suite("hues").groups] == ["hues"]
    (tmp_path / "hues.yaml").rename(tmp_path / "tints.yaml")
    assert "'hues' is not the name of its folder or file, 'tints'" in str(
        load_suites(tmp_path).broken["tints"]
    )


def test_a_change_of_an_included_file_is_noticed_also_its_coming(tmp_path: Path) -> None:
    (tmp_path / "hues.yaml").write_text(LM_EVAL_TASK)
    registry = load_suites(tmp_path)
    assert "_base cannot be read (No such file or directory)" in str(registry.broken["hues"])
    (tmp_path / "_base").write_text("doc_to_text: It is\n")
    come = reload_suites(registry)
    assert come.suite("hues").tasks[0].templates.text.source == "It is"
    (tmp_path / "_base").write_text("doc_to_text: It looks\n")
    changed = reload_suites(come)
    assert changed.suite("hues").tasks[0].templates.text.source == "It looks"
    assert reload_suites(changed) is changed


def test_only_the_suite_that_changed_is_read_again(tmp_path: Path) -> None:
    write_suite(tmp_path, CHOICE_TASK)
    registry = load_suites(write_suite(tmp_path, {**CHOICE_TASK, "task": "tones"}, suite="other"))
    (tmp_path / "other" / "tones.yaml").unlink()
    changed = reload_suites(registry)
    assert changed.suite("shades") is registry.suite("shades")
    assert list(changed.broken) == ["other"]
    shutil.rmtree(tmp_path / "other")
    assert reload_suites(changed).names() == ["shades"]


def test_missing_folder_is_refused_with_what_to_set(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="PROCTOR_SCHEDULER_SUITES_DIR"):
        YamlInstalledSuites(tmp_path / "nowhere")


def test_suite_that_is_added_later_is_found(tmp_path: Path) -> None:
    catalogue = YamlInstalledSuites(tmp_path)
    assert catalogue.suites() == []
    write_keyed_suite(tmp_path, 3, is_long=False)
    assert catalogue.suite(SUITE).name == SUITE


def test_broken_suite_is_listed_with_its_problem(tmp_path: Path) -> None:
    write_keyed_suite(tmp_path, 3, is_long=False)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "suite.yaml").write_text("suite: [")
    catalogue = YamlInstalledSuites(tmp_path)
    broken, whole = catalogue.suites()
    assert isinstance(broken, BrokenSuite)
    assert "suite.yaml" in broken.problem
    assert whole.name == SUITE
    with pytest.raises(InvalidSuiteFile):
        catalogue.suite("broken")
