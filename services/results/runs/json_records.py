"""Domain records as the JSON that Postgres keeps, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from services.results.figures import Figure
from services.results.outcomes.outcome import Timing, TokenUsage
from services.results.runs.run_record import MetricUse, ScoringMethod, ScoringRecipe, TaskProvenance
from services.results.runs.run_summary import RunSummary, TaskSummary
from services.results.task_scoring import OutputType

_Fields = Mapping[str, Any]


def to_json(record: RunSummary | ScoringRecipe | TaskProvenance) -> str:
    return orjson.dumps(asdict(record)).decode()


def scoring_from_json(text: str) -> ScoringRecipe:
    fields: _Fields = orjson.loads(text)
    return ScoringRecipe(
        OutputType(fields["output_type"]),
        tuple(MetricUse(**use) for use in fields["metrics"]),
        fields["filters_json"],
        fields["target_delimiter"],
    )


def provenance_from_json(text: str) -> TaskProvenance:
    fields: _Fields = orjson.loads(text)
    return TaskProvenance(**{**fields, "stop": tuple(fields["stop"])})


def summary_from_json(text: str) -> RunSummary:
    fields: _Fields = orjson.loads(text)
    return RunSummary(
        **{
            **fields,
            "tasks": tuple(_task_summary(task) for task in fields["tasks"]),
            "computed_at": datetime.fromisoformat(fields["computed_at"]),
            "usage": TokenUsage(**fields["usage"]),
            "mean_timing": Timing(**fields["mean_timing"]),
        }
    )


def _task_summary(fields: _Fields) -> TaskSummary:
    figures = {metric: Figure(**figure) for metric, figure in fields["figures"].items()}
    return TaskSummary(
        **{**fields, "scoring_method": ScoringMethod(fields["scoring_method"]), "figures": figures}
    )
