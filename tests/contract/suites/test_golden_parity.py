"""The golden files of lm-evaluation-harness: the same rows and model give the same prompts, scores, figures.

Everything goes through the functions that a run uses, from the suite files to the summary.
"""

import math
from collections.abc import Sequence
from functools import cache

import pytest

from services.results.statistics.figure import Figure
from tests.reference.evaluated_tasks import Examination, Examined, examine, suites
from tests.reference.golden_comparison import assert_same_figures, assert_same_questions, assert_same_scores
from tests.reference.golden_reference import (
    GOLDEN_FILES,
    GOLDEN_TASK_NAMES,
    GOLDEN_TASKS,
    GoldenFile,
    GoldenTask,
    golden_file,
    golden_rows,
    hash_answer,
)

# What lm-evaluation-harness gives as version of a task that names none: the class of the task.
NO_VERSION = "Yaml"

each_file = pytest.mark.parametrize("file", GOLDEN_FILES, ids=lambda file: f"{file.shots}shot")
each_task = pytest.mark.parametrize(("suite", "task"), GOLDEN_TASK_NAMES)


@cache
def examined(suite: str, tasks: Sequence[str], file: GoldenFile) -> Examined:
    definition = suites().suite(suite)
    return examine(
        Examination(
            suite=definition,
            tasks=[definition.task(task) for task in tasks],
            rows_of=lambda reference: golden_rows(reference, file.rows),
            answer_of=hash_answer,
            num_fewshot=file.shots,
        )
    )


def examined_and_golden(suite: str, task: str, file: GoldenFile) -> tuple[Examined, GoldenTask]:
    golden = golden_file(file)[task]
    return examined(suite, GOLDEN_TASKS[suite], file), golden


@each_file
@each_task
def test_prompts_continuations_and_targets_equal_the_golden_ones(
    suite: str, task: str, file: GoldenFile
) -> None:
    ours, golden = examined_and_golden(suite, task, file)
    assert_same_questions(ours.samples[task], golden)


@each_file
@each_task
def test_scores_of_each_sample_equal_the_golden_ones(suite: str, task: str, file: GoldenFile) -> None:
    ours, golden = examined_and_golden(suite, task, file)
    assert_same_scores(ours.outcomes[task], golden)


@each_file
@each_task
def test_figures_equal_the_golden_ones(suite: str, task: str, file: GoldenFile) -> None:
    ours, golden = examined_and_golden(suite, task, file)
    [summary] = [one for one in ours.summary.tasks if one.task == task]
    assert_same_figures(summary.figures, golden)


@each_task
def test_the_version_is_the_one_of_the_golden_file(suite: str, task: str) -> None:
    version = golden_file(GOLDEN_FILES[0])[task]["version"]
    assert version in (NO_VERSION, float(suites().suite(suite).task(task).version))


@each_file
def test_every_task_of_the_golden_file_is_compared(file: GoldenFile) -> None:
    assert golden_file(file).keys() == {task for _, task in GOLDEN_TASK_NAMES}


@each_file
@pytest.mark.parametrize(
    ("suite", "group"),
    [
        ("mmlu", "mmlu_stem"),
        ("mmlu", "mmlu_humanities"),
        ("mmlu", "mmlu_other"),
        ("mmlu", "mmlu"),
        ("medical", "medical"),
    ],
)
def test_a_group_is_weighted_by_size_with_the_pooled_error_of_the_reference(
    suite: str, group: str, file: GoldenFile
) -> None:
    ours = examined(suite, GOLDEN_TASKS[suite], file)
    [summary] = [one for one in ours.summary.groups if one.group == group]
    assert len(summary.tasks) > 1
    results = [golden_file(file)[task]["results"] for task in summary.tasks]
    mean, stderr = pooled(
        [float(one["acc,none"]) for one in results],
        [float(one["acc_stderr,none"]) for one in results],
        [int(one["sample_len"]) for one in results],
    )
    figure: Figure = summary.figures["acc"]
    assert figure.n == file.rows * len(results)
    assert figure.mean == pytest.approx(mean, abs=1e-9)
    assert figure.stderr == pytest.approx(stderr, abs=1e-9)


def pooled(means: Sequence[float], stderrs: Sequence[float], sizes: Sequence[int]) -> tuple[float, float]:
    """As aggregate_subtask_metrics and pooled_sample_stderr of lm_eval.api.metrics have it."""
    total = sum(sizes)
    mean = sum(mean * size for mean, size in zip(means, sizes, strict=True)) / total
    variances = [(size - 1) * size * stderr**2 for size, stderr in zip(sizes, stderrs, strict=True)]
    return mean, math.sqrt(sum(variances) / (total - len(sizes)) / total)
