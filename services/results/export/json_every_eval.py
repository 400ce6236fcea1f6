"""A run in the form of Every Eval Ever 0.3: a document with its figures, and a line for each answer.

The fields are those of its schemas, https://github.com/evaleval/every_eval_ever (eval.schema.json and
instance_level_eval.schema.json). What a run does not know, it leaves out or calls unknown.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from proctor.values.metrics.names import metric_of
from proctor.values.names.model_name import split_model
from proctor.values.outcome import Answer, Failure
from services.results.export.exported_run import ExportedRun
from services.results.export.ports import ExportRow, OutcomeFormat, RowFormat
from services.results.outcomes.outcome import ListedOutcome
from services.results.scoring.compiled_scoring import metric_names
from services.results.statistics.figure import Figure
from services.results.summaries.run_summary import TaskSummary

SCHEMA_VERSION = "0.3.0"
_UNKNOWN = "unknown"


def evaluation_id(run: ExportedRun) -> str:
    """`benchmark/model/run`: equal for the document and its lines."""
    facts = run.record.plan.facts
    return f"{facts.title}/{_model_id(run).replace('/', '_')}/{run.record.plan.run_id}"


def _model_id(run: ExportedRun) -> str:
    """A model of the hub by its own name; that of a provider with the provider."""
    provider, name = split_model(run.record.plan.facts.model)
    return name if "/" in name else f"{provider}/{name}"


@dataclass(frozen=True, slots=True)
class EveryEvalFile:
    run: ExportedRun

    def begin(self) -> bytes:
        return orjson.dumps(_document(self.run), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def write(self, _: Sequence[ExportRow]) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""


def _document(run: ExportedRun) -> Mapping[str, object]:
    plan, environment = run.record.plan, run.environment
    created = plan.facts.created_at
    made_at = run.record.frozen_at or created
    provider, name = split_model(plan.facts.model)
    lower = {
        task.task: [each.key for each in scoring.scored_metrics if not each.metric.entry.higher_is_better]
        for task, scoring in zip(plan.tasks, plan.scorings, strict=True)
    }
    logged = next((task.provenance.logged_by for task in plan.tasks if task.provenance.logged_by), "")
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation_id(run),
        **({"evaluation_timestamp": str(int(created.timestamp()))} if created else {}),
        "retrieved_timestamp": str(int(made_at.timestamp())) if made_at else "0",
        "source_metadata": {
            "source_name": "Proctor",
            "source_type": "evaluation_run",
            "source_organization_name": plan.facts.user or _UNKNOWN,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": logged or "proctor", "version": environment.get("proctor", _UNKNOWN)},
        "model_info": {
            "name": name,
            "id": _model_id(run),
            "inference_platform": provider,
            "additional_details": {"deployment_type": _UNKNOWN, "model_availability": _UNKNOWN},
        },
        "evaluation_results": [
            _result(task, metric, figure, lower_is_better=metric in lower.get(task.task, ()))
            for task in run.summary.tasks
            for metric, figure in task.figures.items()
            if figure.mean is not None
        ],
    }


def _result(task: TaskSummary, metric: str, figure: Figure, *, lower_is_better: bool) -> Mapping[str, object]:
    known = metric_of(metric)
    unit = known.unit if known else None
    bounds = {"min_score": unit.low, "max_score": unit.high} if unit else {}
    return {
        "evaluation_result_id": f"{task.task}/{metric}",
        "evaluation_name": task.task,
        "source_data": {
            "dataset_name": task.row_source or task.task,
            "source_type": "other",
            "additional_details": {"revision": task.row_source_revision, "task_version": task.version},
        },
        "metric_config": {
            "metric_id": metric,
            "metric_name": metric,
            **({"metric_unit": unit.in_words} if unit else {}),
            "lower_is_better": lower_is_better or (known is not None and not known.higher_is_better),
            "score_type": "continuous",
            **{name: bound for name, bound in bounds.items() if bound is not None},
        },
        "score_details": {"score": figure.mean, "uncertainty": _uncertainty(figure)},
        "generation_config": {"additional_details": {"num_fewshot": str(task.num_fewshot)}},
    }


def _uncertainty(figure: Figure) -> Mapping[str, object]:
    found: dict[str, object] = {"num_samples": figure.n}
    if figure.stderr is not None:
        found["standard_error"] = {"value": figure.stderr}
    if figure.ci_low is not None and figure.ci_high is not None:
        found["confidence_interval"] = {
            "lower": figure.ci_low,
            "upper": figure.ci_high,
            "confidence_level": 0.95,
        }
    return found


class EveryEvalLines:
    """A failure of the machinery is no answer, so it has no line."""

    def __init__(self, run: ExportedRun) -> None:
        self._run = run
        scorings = zip(run.record.plan.tasks, run.record.plan.scorings, strict=True)
        self._metrics = {task.task: metric_names(scoring) for task, scoring in scorings}

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes:
        lines = [line for one in outcomes if (line := self._line(one)) is not None]
        return b"".join([orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines])

    def _line(self, listed: ListedOutcome) -> Mapping[str, object] | None:
        result, sample = listed.scored.outcome.result, listed.sample
        score = self._score(listed)
        if isinstance(result, Failure) or score is None:
            return None
        metric, value = score
        target = sample.target
        right = [target.choice] if target.choice is not None else list(target.right_choices)
        reference = [target.choices[index] for index in right] if target.choices else list(target.texts)
        asked = {"raw": sample.prompt.as_text, "reference": reference}
        if target.choices:
            asked["choices"] = list(target.choices)
        usage = listed.scored.outcome.usage
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": evaluation_id(self._run),
            "model_id": _model_id(self._run),
            "evaluation_name": listed.task.task,
            "evaluation_result_id": f"{listed.task.task}/{metric}",
            "sample_id": sample.row_id or str(sample.doc_id),
            "sample_hash": hashlib.sha256(f"{asked['raw']}{reference}".encode()).hexdigest(),
            "interaction_type": "single_turn",
            "input": asked,
            "output": _output(result, listed.scored.prediction),
            "answer_attribution": [_attribution(listed.scored.prediction)],
            "evaluation": {"score": value, "is_correct": value >= 1.0},
            "token_usage": {
                "input_tokens": usage.prompt_tokens,
                "output_tokens": usage.completion_tokens,
                "total_tokens": usage.prompt_tokens + usage.completion_tokens,
            },
            "performance": {"latency_ms": listed.scored.outcome.timing.total_seconds * 1000},
        }

    def _score(self, listed: ListedOutcome) -> tuple[str, float] | None:
        """The first metric that gives the answer a number."""
        for metric in self._metrics[listed.task.task]:
            value = listed.scored.scores.get(metric)
            if isinstance(value, int | float):
                return metric, float(value)
        return None


def _output(answer: Answer, prediction: str) -> Mapping[str, object]:
    """A choice by log-likelihood is the text that was the likeliest."""
    output: dict[str, object] = {"raw": [answer.text or prediction]}
    if answer.reasoning:
        output["reasoning_trace"] = [answer.reasoning]
    return output


def _attribution(prediction: str) -> Mapping[str, object]:
    return {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": prediction,
        "extraction_method": "custom",
        "is_terminal": True,
    }


EVERY_EVAL = RowFormat("_every_eval.json", "application/json", EveryEvalFile, rows=None, has_figures=True)
EVERY_EVAL_SAMPLES = OutcomeFormat(
    "_every_eval_samples.jsonl", "application/jsonl", EveryEvalLines, is_of_one_task=False
)
