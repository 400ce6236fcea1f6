"""Domain records as the JSON that Postgres keeps, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson

from services.results.figures.figure import Figure
from services.results.outcomes.outcome import Timing, TokenUsage
from services.results.runs.model_price import ModelPrice
from services.results.runs.run_record import (
    GroupMetric,
    MetricUse,
    ScoringMethod,
    ScoringRecipe,
    TaskGroup,
    TaskProvenance,
)
from services.results.runs.run_summary import GroupSummary, RunSummary, TaskSummary
from services.results.runs.timing_summary import Percentiles, TimingSummary
from services.results.scores.task_scoring import OutputType

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


def groups_to_json(groups: tuple[TaskGroup, ...]) -> str:
    return orjson.dumps([asdict(group) for group in groups]).decode()


def groups_from_json(text: str) -> tuple[TaskGroup, ...]:
    return tuple(
        TaskGroup(
            fields["group"],
            tuple(fields["tasks"]),
            tuple(GroupMetric(**metric) for metric in fields["metrics"]),
        )
        for fields in orjson.loads(text)
    )


def price_to_json(price: ModelPrice | None) -> str | None:
    return orjson.dumps(asdict(price)).decode() if price else None


def price_from_json(text: str | None) -> ModelPrice | None:
    return _price(orjson.loads(text)) if text is not None else None


def _price(stored: _Fields) -> ModelPrice:
    """Postgres gives a number without a fraction back as a whole one, however large."""
    cached = stored["cached_input_per_million"]
    return ModelPrice(
        float(stored["input_per_million"]),
        float(stored["output_per_million"]),
        None if cached is None else float(cached),
        stored["currency"],
    )


def summary_from_json(text: str) -> RunSummary:
    fields: _Fields = orjson.loads(text)
    return RunSummary(
        **{
            **fields,
            "tasks": tuple(_task_summary(task) for task in fields["tasks"]),
            # Summaries kept before there were groups have none.
            "groups": tuple(_group_summary(group) for group in fields.get("groups", ())),
            "computed_at": datetime.fromisoformat(fields["computed_at"]),
            "usage": TokenUsage(**fields["usage"]),
            "mean_timing": Timing(**fields["mean_timing"]),
            "timing": _timing_summary(fields.get("timing", {})),
            "price": _price(fields["price"]) if fields.get("price") else None,
        }
    )


def _timing_summary(fields: _Fields) -> TimingSummary:
    return TimingSummary(**{name: Percentiles(**spread) for name, spread in fields.items() if spread})


def _task_summary(fields: _Fields) -> TaskSummary:
    method, figures = ScoringMethod(fields["scoring_method"]), figures_from_fields(fields["figures"])
    return TaskSummary(**{**fields, "scoring_method": method, "figures": figures})


def _group_summary(fields: _Fields) -> GroupSummary:
    return GroupSummary(
        fields["group"],
        tuple(fields["tasks"]),
        figures_from_fields(fields["figures"]),
        tuple(fields["missing_tasks"]),
    )


def figures_from_fields(fields: Mapping[str, _Fields]) -> dict[str, Figure]:
    return {metric: Figure(**figure) for metric, figure in fields.items()}
