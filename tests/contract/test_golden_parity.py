"""GLUE against lm-evaluation-harness: the same rows and model give the same prompts, scores and figures.

Everything goes through the functions that a run uses: suite files, rows, rendering, scoring, figures.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypedDict, cast

import numpy as np
import pytest

from services.results import scoring, task_scoring
from services.results.figures import Figure, figure_of, is_label_metric
from services.results.score_columns import LabelColumns, ScoreColumns
from services.scheduler.suites.mirror_rows import MirrorRows
from services.scheduler.suites.render_samples import open_task
from services.scheduler.suites.row_source import RowSet, RowsReference
from services.scheduler.suites.sample import Sample
from services.scheduler.suites.task_definition import TaskDefinition
from services.scheduler.suites.yaml_suites import load_suites

SUITES = Path(__file__).parents[2] / "suites"
TASKS = ["cola", "sst2", "mrpc", "qqp", "mnli", "qnli", "rte", "wnli"]
GOLDEN = [("golden_0shot.json", 0, 30), ("golden_3shot.json", 3, 12)]

GoldenDoc = dict[str, object]


class GoldenTask(TypedDict):
    version: float
    docs: list[GoldenDoc]
    results: dict[str, float]


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a mirror, whichever split is asked for: a golden pool is the evaluated rows."""

    mirror: MirrorRows
    evaluated: RowsReference
    count: int

    def open(self, _: RowsReference) -> RowSet:
        found = self.mirror.open(self.evaluated)
        return RowSet(islice(found.rows, self.count), found.provenance)


@dataclass(frozen=True)
class Examined:
    samples: Sequence[Sample]
    scores: Sequence[scoring.Score]
    figures: dict[str, Figure]


def folder_of(variable: str) -> Path:
    if variable not in os.environ:
        pytest.skip(f"{variable} is not set: parity is not checked without the real rows and golden files")
    return Path(os.environ[variable])


def golden_task(file: str, task: str) -> GoldenTask:
    golden = json.loads((folder_of("PROCTOR_REFERENCE_DIR") / "lm_eval" / file).read_text())
    return cast("GoldenTask", golden[task])


def hash_logprob(context: str, continuation: str) -> tuple[float, bool]:
    digest = int(hashlib.sha256(f"{context}\0{continuation}".encode()).hexdigest(), 16) % 1000
    return -digest / 100.0, digest < 100


def answer_of(sample: Sample) -> scoring.Answer:
    weighed = [hash_logprob(sample.prompt, choice) for choice in sample.choices]
    logprobs, is_greedy = zip(*weighed, strict=True)
    return scoring.Answer(choice_logprobs=tuple(logprobs), choice_is_greedy=tuple(is_greedy))


def scoring_of(task: TaskDefinition) -> task_scoring.TaskScoring:
    declared = task.scoring
    return task_scoring.TaskScoring(
        output_type=task_scoring.OutputType(declared.output_type),
        metrics=tuple(task_scoring.read_metric(use.name, use.options_json) for use in declared.metrics),
        filters=task_scoring.read_filters(declared.filters_json),
        target_delimiter=declared.target_delimiter,
    )


def figure(metric: str, scores: Sequence[scoring.Score]) -> Figure:
    values = [score.scores[metric] for score in scores]
    if not is_label_metric(metric):
        return figure_of(metric, ScoreColumns(np.array(values, dtype=np.float64)))
    pairs = np.array(values, dtype=np.int64)
    return figure_of(metric, LabelColumns(pairs[:, 0], pairs[:, 1]))


def examine(name: str, shots: int, rows: int) -> Examined:
    task = load_suites(SUITES).suite("glue").task(name)
    source = FirstRows(MirrorRows(folder_of("PROCTOR_DATA_DIR")), task.rows, rows)
    samples = list(open_task(task, source, num_fewshot=shots).samples)
    how = scoring_of(task)
    targets = [scoring.Target(sample.choices, sample.target.choice) for sample in samples]
    scores = [
        scoring.score_answer(how, target, answer_of(sample))
        for target, sample in zip(targets, samples, strict=True)
    ]
    figures = {metric: figure(metric, scores) for metric in task_scoring.metric_names(how)}
    return Examined(samples, scores, figures)


def as_golden(value: float | scoring.LabelPair) -> object:
    """The golden files hold a predicted label as text."""
    return [value[0], str(value[1])] if isinstance(value, tuple) else value


@pytest.mark.parametrize(("file", "shots", "rows"), GOLDEN)
@pytest.mark.parametrize("name", TASKS)
def test_prompts_continuations_and_targets_equal_the_golden_ones(
    name: str, file: str, shots: int, rows: int
) -> None:
    golden = golden_task(file, name)
    examined = examine(name, shots, rows)
    assert [
        {
            "doc_id": sample.doc_id,
            "arguments": [[sample.prompt, choice] for choice in sample.choices],
            "target": sample.target.choice,
        }
        for sample in examined.samples
    ] == [{key: doc[key] for key in ("doc_id", "arguments", "target")} for doc in golden["docs"]]


@pytest.mark.parametrize(("file", "shots", "rows"), GOLDEN)
@pytest.mark.parametrize("name", TASKS)
def test_scores_of_each_sample_equal_the_golden_ones(name: str, file: str, shots: int, rows: int) -> None:
    golden = golden_task(file, name)
    examined = examine(name, shots, rows)
    for score, doc in zip(examined.scores, golden["docs"], strict=True):
        metrics = doc.keys() - {"doc_id", "arguments", "target"}
        assert {metric: as_golden(score.scores[metric]) for metric in metrics} == {
            metric: doc[metric] for metric in metrics
        }


@pytest.mark.parametrize(("file", "shots", "rows"), GOLDEN)
@pytest.mark.parametrize("name", TASKS)
def test_figures_equal_the_golden_ones(name: str, file: str, shots: int, rows: int) -> None:
    results = golden_task(file, name)["results"]
    examined = examine(name, shots, rows)
    golden_metrics = {key.removesuffix(",none") for key in results if key.endswith(",none")}
    compared = [metric for metric in examined.figures if metric in golden_metrics]
    assert compared
    for metric in compared:
        ours = examined.figures[metric]
        assert ours.n == rows
        assert ours.mean == pytest.approx(results[f"{metric},none"], abs=1e-9)
        # Two bootstraps of 1,000 resamples differ by some per cent; a mean's error is exact.
        relative = 0.12 if is_label_metric(metric) else 0.0
        assert ours.stderr == pytest.approx(results[f"{metric}_stderr,none"], rel=relative, abs=1e-9)


@pytest.mark.parametrize("name", TASKS)
def test_the_version_is_the_one_of_the_golden_file(name: str) -> None:
    task = load_suites(SUITES).suite("glue").task(name)
    assert task.version == str(golden_task("golden_0shot.json", name)["version"])


def test_every_task_of_the_suite_is_compared() -> None:
    assert [task.name for task in load_suites(SUITES).suite("glue").tasks] == TASKS
