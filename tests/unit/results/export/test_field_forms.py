"""Runs in the forms of the field: Every Eval Ever, and the model-index block of a model card."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import yaml

from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.export.cards.model_card import MODEL_CARD
from services.results.export.exported_run import ExportedRun
from services.results.export.json_every_eval import EVERY_EVAL, EVERY_EVAL_SAMPLES, EveryEvalLines
from services.results.outcomes.outcome import ListedOutcome
from services.results.runs.run_plan import RunFacts, RunPlan, RunRecord
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import RunSummary, TaskSummary
from tests.fakes.imports.read_logs import read
from tests.fakes.results.recorded_run import answered, choice_sample, failed, plan_of, scored

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FIGURES = {"acc": Figure(0.75, 0.2, 0.2, 0.4, 1.0, 4), "mcc": Figure()}


def exported() -> ExportedRun:
    facts = RunFacts(benchmark="quiz", model="vllm/org/model", user="olga", created_at=NOW)
    plan: RunPlan = replace(plan_of([4]), facts=facts)
    task = TaskSummary("t0", "1.0", 5, None, False, "org/rows config test", "abc", 4, 4, 0, 1, FIGURES)  # noqa: FBT003  # its fields
    summary = RunSummary(plan.run_id, 1, is_partial=False, tasks=(task,), total=4, computed_at=NOW)
    record = RunRecord(plan, 1, is_frozen=True, frozen_at=NOW)
    return ExportedRun(record, is_partial=False, environment={"proctor": "0.1.0"}, figures=summary)


def listed(run: ExportedRun) -> list[ListedOutcome]:
    task, run_id = run.record.plan.tasks[0], run.record.plan.run_id
    outcomes = [scored(run_id, answered(0)), scored(run_id, failed(1))]
    return [ListedOutcome(task, choice_sample(one.outcome.sample), one) for one in outcomes]


def test_every_eval_ever_has_a_result_for_each_figure() -> None:
    run = exported()
    document: dict[str, Any] = json.loads(EVERY_EVAL.open(run).begin())
    assert document["schema_version"] == "0.3.0"
    assert document["evaluation_id"] == f"quiz/org_model/{run.record.plan.run_id}"
    assert (document["model_info"]["id"], document["eval_library"]["version"]) == ("org/model", "0.1.0")
    [result] = document["evaluation_results"]
    assert (result["evaluation_name"], result["metric_config"]["metric_name"]) == ("t0", "acc")
    details = result["score_details"]
    assert details["score"] == 0.75
    assert details["uncertainty"]["standard_error"] == {"value": 0.2}
    assert details["uncertainty"]["confidence_interval"]["lower"] == 0.4


def test_every_eval_ever_says_of_which_figures_less_is_better() -> None:
    run = exported()
    [task] = run.summary.tasks
    figures = {"bleu": Figure(30.0), "ter,strict": Figure(61.0), "of_code": Figure(1.0)}
    summary = replace(run.summary, tasks=(replace(task, figures=figures),))
    plan, use = run.record.plan, MetricUse("of_code", function="a.py:bias", less_is_better=True)
    scoring = TaskScoring(OutputType.GENERATE_UNTIL, (use,), code_digest="0")
    plan = replace(plan, tasks=(replace(plan.tasks[0], scoring=scoring),))
    run = replace(run, record=replace(run.record, plan=plan), figures=summary)
    document = json.loads(EVERY_EVAL.open(run).begin())
    configs = [result["metric_config"] for result in document["evaluation_results"]]
    assert {one["metric_id"]: one["lower_is_better"] for one in configs} == {
        "bleu": False,
        "ter,strict": True,
        "of_code": True,
    }


def test_lines_of_every_eval_ever_are_read_again() -> None:
    """A failure has no line."""
    run = exported()
    content = EveryEvalLines(run).write(listed(run))
    document = EVERY_EVAL.open(run).begin()
    again, [sample] = read({"x.json": document, "x_samples.jsonl": content})
    assert (again.model, again.tasks[0].task) == ("org/model", "t0")
    assert dict(sample.answers[0].scores) == {"acc": 1.0}
    assert sample.sample.target.texts == (" even",)
    assert sample.answers[0].timing.total_seconds == 0.25
    assert EVERY_EVAL_SAMPLES.is_of_one_task is False


def test_a_model_card_has_a_result_for_each_task() -> None:
    text = MODEL_CARD.open(exported()).begin().decode()
    [index] = yaml.safe_load(text.strip("-\n"))["model-index"]
    assert index["name"] == "model"
    [result] = index["results"]
    assert result["dataset"] == {
        "name": "t0",
        "type": "org/rows",
        "config": "config",
        "split": "test",
        "revision": "abc",
    }
    [metric] = result["metrics"]
    assert (metric["type"], metric["value"], metric["verified"]) == ("acc", 0.75, False)
    assert metric["name"] == "acc, 5-shot, n=4, 95% 0.4 to 1, 25.0% unparsed"
