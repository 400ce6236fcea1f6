"""Reads summaries from the JSON that Postgres keeps."""

from collections.abc import Mapping
from datetime import datetime

import orjson

from services.results.figures.figure import Figure
from services.results.outcomes.timing_summary import Percentiles, TimingSummary
from services.results.runs.json_records import _Fields, _price
from services.results.scoring.recipe import ScoringMethod
from services.results.summaries.run_summary import GroupSummary, RunSummary, TaskSummary
from services.results.values import Timing, TokenUsage


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
