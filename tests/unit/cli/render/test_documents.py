"""Scripts get plain JSON: numbers stay numbers, enums are words, what is unset is null."""

import json

from proctor.cli.render.words import document
from proctor.v1 import outcome_pb2, run_pb2, summary_pb2


def test_run_becomes_plain_json() -> None:
    run = run_pb2.Run(run_id="r", state=run_pb2.RUN_STATE_COMPLETED, environment={"vllm": "0.32"})
    run.order.limit = 5
    run.created_at.FromSeconds(0)
    run.progress.total = 2**40
    shown = document(run)
    assert json.loads(json.dumps(shown)) == shown
    assert shown["state"] == "completed"
    assert shown["created_at"] == "1970-01-01T00:00:00+00:00"
    assert shown["finished_at"] is None
    assert shown["environment"] == {"vllm": "0.32"}
    order, progress = shown["order"], shown["progress"]
    assert isinstance(order, dict)
    assert isinstance(progress, dict)
    assert (order["limit"], order["num_fewshot"]) == (5, None)
    assert progress["total"] == 2**40


def test_figures_and_outcomes_become_plain_json() -> None:
    figure = summary_pb2.MetricFigure(metric="acc", mean=0.5, n=4)
    task = summary_pb2.TaskSummary(task="t", metrics=[figure], scoring_method=run_pb2.SCORING_METHOD_GENERATE)
    shown = document(summary_pb2.RunSummary(tasks=[task], failures={"timeout": 2}))
    assert shown["failures"] == {"timeout": 2}
    tasks = shown["tasks"]
    assert isinstance(tasks, list)
    assert isinstance(tasks[0], dict)
    assert tasks[0]["scoring_method"] == "generate"
    recorded = outcome_pb2.RecordedOutcome(digest=b"\xab", scores={"acc": 1.0})
    assert document(recorded)["digest"] == "ab"
    assert document(recorded)["scores"] == {"acc": 1.0}


def test_parameters_of_a_provider_keep_their_form() -> None:
    params = run_pb2.GenerationParams(temperature=0.0)
    params.provider_params.update({"min_p": 0.1, "tags": ["a"]})
    assert document(params)["provider_params"] == {"min_p": 0.1, "tags": ["a"]}
    assert document(params)["temperature"] == 0.0
