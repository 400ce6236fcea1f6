"""Every task of every suite of the repository: it loads, names its sources, and asks what it should."""

import re

import pytest

from proctor.values.sample import Target
from proctor.values.scoring import OutputType
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.suite import TaskDefinition
from tests.fakes.suites.suite_folder import RowsInMemory
from tests.reference.evaluated_tasks import suites
from tests.reference.suite_rows import MadeRows

NAMES = {
    "aime",
    "arc",
    "bbh",
    "belebele",
    "drop",
    "glue",
    "gpqa",
    "gsm8k",
    "hellaswag",
    "hendrycks_math",
    "ifeval",
    "lambada",
    "leaderboard",
    "medical",
    "mgsm",
    "minerva_math",
    "mmlu",
    "mmlu_continuation",
    "mmlu_generative",
    "mmlu_pro",
    "multirc_corrected",
    "musr",
    "open_questions",
    "openbookqa",
    "openllm",
    "piqa",
    "race",
    "squadv2",
    "starter",
    "superglue",
    "truthfulqa",
    "wikitext",
    "winogrande",
    "xnli",
}
TASK_NAMES = [(suite.name, task.name) for suite in suites().suites.values() for task in suite.tasks]
MMLU_GROUPS = {"stem": 19, "humanities": 13, "social_sciences": 12, "other": 13}

each_task = pytest.mark.parametrize(("suite", "name"), TASK_NAMES)


def task_of(suite: str, name: str) -> TaskDefinition:
    return suites().suite(suite).task(name)


def asked(suite: str, name: str, shots: int = 0) -> RenderedSample:
    """The first sample over rows of our own making."""
    rendered = open_task(task_of(suite, name), MadeRows(), num_fewshot=shots, limit=1)
    return next(iter(rendered.samples))


def test_every_suite_loads() -> None:
    assert not suites().broken
    assert set(suites().names()) >= NAMES


@each_task
def test_a_task_is_asked_about_a_row_of_its_data_set(suite: str, name: str) -> None:
    sample, task = asked(suite, name), task_of(suite, name)
    # A task of sentences as choices asks nothing before them, nor does one of whole texts.
    assert sample.prompt.as_text or suite in ("xnli", "wikitext") or sample.choice_ending
    assert "{{" not in sample.prompt.as_text
    assert bool(sample.choices) is (task.scoring.output_type is not OutputType.GENERATE_UNTIL)
    assert sample.target != Target()


@each_task
def test_an_example_stands_solved_before_the_question(suite: str, name: str) -> None:
    task = task_of(suite, name)
    if task.scoring.output_type is OutputType.LOGLIKELIHOOD_ROLLING:
        return
    assert task.fewshot_rows is not None or task.fewshot.samples
    alone, after_one = asked(suite, name).prompt.as_text, asked(suite, name, shots=1).prompt.as_text
    question = alone.removeprefix(task.templates.description)
    assert after_one.startswith(task.templates.description)
    assert after_one.endswith(f"{task.fewshot.delimiter}{question}")
    assert len(after_one) > len(alone)


def test_each_task_names_its_citation_its_licence_and_its_version() -> None:
    facts = [(suite, name, task_of(suite, name)) for suite, name in TASK_NAMES]
    bare = [
        f"{suite}/{name}: {fact}"
        for suite, name, task in facts
        for fact in ("citation", "license")
        if not isinstance(task.metadata[fact], str) or not task.metadata[fact]
    ]
    assert bare == []
    assert [f"{suite}/{name}" for suite, name, task in facts if not task.version] == []


def test_examples_are_shown_only_where_the_reference_shows_them() -> None:
    shots = {(suite, name): task_of(suite, name).fewshot.num_fewshot for suite, name in TASK_NAMES}
    of_mmlu_pro = {task.name: 5 for task in suites().suite("mmlu_pro").tasks}
    boards = ("openllm", "leaderboard")
    shown = {name: number for (suite, name), number in shots.items() if number and suite not in boards}
    of_minerva = {task.name: 4 for task in suites().suite("minerva_math").tasks}
    assert shown == {"gsm8k": 5, "mbpp": 3, **of_mmlu_pro, **of_minerva}


def test_the_first_leaderboard_shows_as_many_examples_as_it_did() -> None:
    shots = {task.name: task.fewshot.num_fewshot for task in suites().suite("openllm").tasks}
    of_mmlu = {shots.pop(name) for name in list(shots) if name.startswith("mmlu_")}
    assert of_mmlu == {5}
    assert shots == {
        "arc_challenge": 25,
        "hellaswag": 10,
        "truthfulqa_mc2": 0,
        "winogrande": 5,
        "gsm8k": 5,
    }


def test_the_first_leaderboard_asks_what_the_suites_of_its_tasks_ask() -> None:
    own = {"arc_challenge": "arc", "truthfulqa_mc2": "truthfulqa", "gsm8k": "gsm8k"}
    own |= {"hellaswag": "hellaswag", "winogrande": "winogrande"}
    for task in suites().suite("openllm").tasks:
        alone = task_of(own.get(task.name, "mmlu"), task.name)
        assert (task.version, task.templates, task.rows.hub_id) == (
            alone.version,
            alone.templates,
            alone.rows.hub_id,
        )
        assert set(task.scoring.metrics) == set(alone.scoring.metrics)


def test_the_second_leaderboard_shows_as_many_examples_as_it_did() -> None:
    shots = {task.name: task.fewshot.num_fewshot for task in suites().suite("leaderboard").tasks}
    by_part: dict[str, set[int]] = {}
    for name, number in shots.items():
        by_part.setdefault(name.split("_")[1], set()).add(number)
    assert by_part == {"bbh": {3}, "gpqa": {0}, "ifeval": {0}, "math": {4}, "mmlu": {5}, "musr": {0}}
    assert len(shots) == 39


@pytest.mark.parametrize(("suite", "name"), [("gpqa", "gpqa_main"), ("leaderboard", "leaderboard_gpqa_main")])
def test_options_of_gpqa_are_turned_by_the_length_of_the_question_and_cleaned(suite: str, name: str) -> None:
    options = ["wrong [1] one", " wrong two ", "wrong [title] three", "right  one"]
    cleaned = ["wrong one", "wrong two", "wrong. three", "right one"]
    first = set()
    for length in range(4, 8):
        row: dict[str, object] = {"Question": "q" * length, "Correct Answer": options[3]}
        row |= {f"Incorrect Answer {place + 1}": text for place, text in enumerate(options[:3])}
        [sample] = open_task(task_of(suite, name), RowsInMemory({"train": [row]})).samples
        shown = re.findall(r"^\([A-D]\) (.*)$", sample.prompt.as_text, re.MULTILINE)
        assert sorted(shown) == sorted(cleaned)
        assert sample.target.choice is not None
        assert shown[sample.target.choice] == "right one"
        first.add(shown[0])
    assert first == set(cleaned)


@pytest.mark.parametrize("suffix", ["", "_generative", "_continuation"])
def test_mmlu_has_57_subjects_each_in_one_of_four_groups(suffix: str) -> None:
    suite = suites().suite(f"mmlu{suffix}")
    *groups, whole = suite.groups
    assert {group.group: len(group.tasks) for group in groups} == {
        f"mmlu_{name}{suffix}": size for name, size in MMLU_GROUPS.items()
    }
    grouped = [task for group in groups for task in group.tasks]
    assert sorted(grouped) == sorted(whole.tasks) == sorted(task.name for task in suite.tasks)
    assert len(set(grouped)) == 57
    assert all(metric.is_weighted_by_size for group in suite.groups for metric in group.metrics)


@pytest.mark.parametrize("suffix", ["", "_generative", "_continuation"])
def test_a_subject_of_mmlu_is_named_in_its_rows_and_in_its_description(suffix: str) -> None:
    for task in suites().suite(f"mmlu{suffix}").tasks:
        subject = task.name.removeprefix("mmlu_").removesuffix(suffix)
        assert task.rows.config == subject
        assert task.templates.description.endswith(f" about {subject.replace('_', ' ')}.\n\n")


def test_the_medical_subjects_of_mmlu_are_those_of_mmlu() -> None:
    medical = [task for task in suites().suite("medical").tasks if task.name.startswith("mmlu_")]
    assert len(medical) == 6
    for task in medical:
        same = task_of("mmlu", task.name)
        assert (task.version, task.scoring, task.fewshot) == (same.version, same.scoring, same.fewshot)
        assert asked("medical", task.name).digest == asked("mmlu", task.name).digest
