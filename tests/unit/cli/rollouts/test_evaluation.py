"""What `summarize` and `eval` print of rollouts, and what only `eval` does."""

import json
from pathlib import Path

import pytest

from proctor.cli.render.terminal import Terminal
from proctor.cli.rollouts.folders import OrderedRun, RolloutFolders
from proctor.cli.rollouts.summary import show_evaluation, show_summary
from proctor.v1 import outcome_pb2, summary_pb2

RUBRIC = {
    "criterion": "It doubles",
    "weight": 2.0,
    "max_score": 1.0,
    "weighted_score": 1.0,
    "test_count": 2,
}


def outcome(task: int, score: float, ended: str, *suspicions: str) -> outcome_pb2.RecordedOutcome:
    recorded = outcome_pb2.RecordedOutcome(doc_id=task, scores={"reward": score})
    rubrics = {"right": {**RUBRIC, "score": score, "tests_passed": int(2 * score)}}
    record = {"score": score, "ended": ended, "rubrics": rubrics, "suspicions": suspicions, "trajectory": {}}
    recorded.outcome.answer.body_json = json.dumps(record)
    return recorded


@pytest.fixture
def folders(tmp_path: Path) -> RolloutFolders:
    """Two tasks by two models; a rollout of the second failed."""
    made = RolloutFolders(tmp_path, "mine", "20260101__00-00-00", "mine.toml")
    for number, model in enumerate(("openai/x", "openai/y")):
        run = OrderedRun(f"run-{number}", model, [1, 1], 2 * number, ["a", "b"], ["a", "b"])
        made.runs.append(run)
        made.add(run, outcome(0, 1.0, "submitted", *(["conftest.py steers a runner"] if number else [])))
        if number:
            failed = outcome_pb2.RecordedOutcome(doc_id=1)
            failed.outcome.failure.message = "It hangs."
            made.add(run, failed)
        else:
            made.add(run, outcome(1, 0.5, "time_limit"))
    return made


def summary_of(cost: float | None) -> summary_pb2.RunSummary:
    summary = summary_pb2.RunSummary(answered=2, cost=cost)
    summary.usage.prompt_tokens, summary.usage.completion_tokens = 1000, 234
    summary.price.currency = "USD"
    figures = summary.tasks.add(task="mine").metrics
    for name in ("pass@1", "reward", "pass@2", "pass@4"):
        figures.add(metric=name, mean=0.75, ci_low=0.5, ci_high=1.0, n=2)
    return summary


def test_one_row_is_that_of_all_tasks_and_models(
    folders: RolloutFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    show_summary(Terminal(is_json=False), folders)
    shown = capsys.readouterr().out
    [overall] = [line.split() for line in shown.splitlines() if line.strip().startswith("overall ")]
    assert overall == ["overall", "3", "2", "0.833", "1"]
    assert "overall: 1 of 3 suspicious: score without them 0.750" in shown
    assert "right" not in shown


def test_an_evaluation_shows_more_than_a_summary(
    folders: RolloutFolders, capsys: pytest.CaptureFixture[str]
) -> None:
    show_evaluation(Terminal(is_json=False), folders, [summary_of(0.5), summary_of(None)])
    shown = capsys.readouterr().out
    assert "a by openai/y: 1 of 1 suspicious: score without them none" in shown
    assert shown.count("pass@4") == 2
    assert "0.7500 ± 0.2500" in shown
    assert "openai/x: 1,234 tokens, 0.5 USD; ended: submitted 1, time limit 1" in shown
    assert "openai/y: 1,234 tokens, no price known; ended: submitted 1, failed 1" in shown
    rubrics = [line.split() for line in shown.splitlines() if " right " in line]
    assert rubrics == [
        ["a", "openai/x", "right", "1.000", "2/2", "1"],
        ["b", "openai/x", "right", "0.500", "1/2", "1"],
        ["a", "openai/y", "right", "1.000", "2/2", "1"],
    ]


def test_an_evaluation_is_one_document(folders: RolloutFolders, capsys: pytest.CaptureFixture[str]) -> None:
    show_evaluation(Terminal(is_json=True), folders, [summary_of(0.5), summary_of(None)])
    document = json.loads(capsys.readouterr().out)
    assert document.keys() == {"name", "stamp", "tasks", "overall", "models", "rubrics"}
    first, second = document["models"]
    assert (first["cost"], second["cost"], first["ended"]) == (0.5, None, {"submitted": 1, "time_limit": 1})
    assert [figure["metric"] for figure in first["figures"]] == ["reward", "pass@1", "pass@4"]
