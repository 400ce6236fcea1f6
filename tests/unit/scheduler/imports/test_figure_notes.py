"""A log's own figure that is not that of its samples has a sentence."""

import json

import pytest

from services.scheduler.imports.logged_run import LoggedRun
from tests.fakes.imports.read_logs import lines, read
from tests.unit.scheduler.imports.test_harness_log import RESULTS, choice_line
from tests.unit.scheduler.imports.test_other_logs import (
    HEADER,
    every_eval_line,
    helm_files,
    helm_request,
    inspect_sample,
)


def harness(results: dict[str, object], **samples: list[dict[str, object]]) -> LoggedRun:
    files = {f"samples_{task}.jsonl": lines(*of_task) for task, of_task in samples.items()}
    return read({"results.json": json.dumps({**RESULTS, **results}), **files})[0]


def of_count(count: int) -> dict[str, object]:
    return {"n-samples": {"qa": {"original": count, "effective": count}}}


def test_samples_that_the_log_counts_and_has_not_are_named() -> None:
    results: dict[str, object] = {"results": {"qa": {"acc,none": 1.0}}}
    assert harness({**results, **of_count(1)}, qa=[choice_line(0, 1.0)]).notes == ()
    assert harness({**results, **of_count(9)}, qa=[choice_line(0, 1.0)]).notes == (
        "Samples of qa in the log: 1; by its own count: 9.",
    )


@pytest.mark.parametrize(("figure", "notes"), [(2 / 3, 0), (0.6, 1)])
def test_an_f1_of_another_average_is_named(figure: float, notes: int) -> None:
    pairs = [[1, 1], [1, 0]]
    results: dict[str, object] = {"results": {"qa": {"f1,none": figure}}, **of_count(2)}
    scored = [choice_line(doc, 1.0, metrics=["f1"], f1=pair) for doc, pair in enumerate(pairs)]
    found = harness(results, qa=scored).notes
    assert len(found) == notes
    assert all("the F1 of label 1, is 0.666667" in note for note in found)


@pytest.mark.parametrize("figure", [0.75, 0.5])
def test_a_group_of_groups_is_the_benchmark_and_has_a_figure_too(figure: float) -> None:
    groups = {"whole": ["left", "right"], "left": ["qa"], "right": ["qb"]}
    results: dict[str, object] = {"results": {"whole": {"acc,none": figure}}, "group_subtasks": groups}
    results["n-samples"] = {}
    run = harness(results, qa=[choice_line(doc, 1.0) for doc in range(3)], qb=[choice_line(0, 0.0)])
    note = "acc,none of whole is 0.5 in the log; that of all its samples is 0.75."
    assert (run.benchmark, run.notes) == ("whole", () if figure == 0.75 else (note,))


def test_scores_in_percent_are_named() -> None:
    run = harness({"results": {}, **of_count(1)}, qa=[choice_line(0, 57.0)])
    assert run.notes == ("acc of qa is 57, where 0 to 1 is usual.",)


def test_inspect_has_the_figure_of_each_scorer() -> None:
    samples = [inspect_sample(1, 1, "C"), inspect_sample(2, 1, "C")]
    run, _ = read(json.dumps({**HEADER, "samples": samples}).encode(), "quiz.json")
    assert run.notes == ("match/accuracy of quiz is 0.5 in the log; the mean of its samples is 1.",)


def test_an_epoch_that_is_there_twice_counts_once() -> None:
    samples = [inspect_sample(1, 1, "I"), inspect_sample(1, 1, "C"), inspect_sample(2, 1, "I")]
    run, [first, _] = read(json.dumps({**HEADER, "samples": samples}).encode(), "quiz.json")
    assert (run.rollouts, run.notes) == (1, ())
    assert [dict(answer.scores) for answer in first.answers] == [{"match": 1.0}]


def test_helm_has_its_figures_in_a_file_of_their_own() -> None:
    stats = [{"name": {"name": "exact_match", "split": "test"}, "mean": 0.25}]
    files = {**helm_files([helm_request("id1", " B")]), "run/stats.json": json.dumps(stats)}
    run, _ = read(files)
    assert dict(run.tasks[0].figures) == {"test/exact_match": 0.25}
    assert run.notes[-1].startswith("test/exact_match of mmlu:subject=law is 0.25 in the log")


def test_every_eval_ever_has_one_for_each_evaluation() -> None:
    result = {"evaluation_name": "sums", "score_details": {"score": 0.5}}
    document = {"evaluation_id": "x", "evaluation_results": [result]}
    run, _ = read({"x.json": json.dumps(document), "x.jsonl": lines(every_eval_line("a", 1))})
    assert run.notes == ("score of sums is 0.5 in the log; the mean of its samples is 1.",)
