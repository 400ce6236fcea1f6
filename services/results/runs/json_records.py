"""Domain records as the JSON that Postgres keeps, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import orjson

from services.results.runs.run_plan import GroupMetric, TaskGroup, TaskProvenance
from services.results.scoring.recipe import MetricUse, ScoringRecipe
from services.results.scoring.task_scoring import OutputType
from services.results.values import ModelPrice

_Fields = Mapping[str, Any]


def to_json(record: ScoringRecipe | TaskProvenance) -> str:
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
