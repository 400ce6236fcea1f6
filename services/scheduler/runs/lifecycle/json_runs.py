"""Parts of a run that are stored as JSON: what was ordered, what was counted, how a task generates."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from services.scheduler.progress.run_counts import RunCounts, TaskCounts
from services.scheduler.runs.model_price import ModelPrice, TokenUsage
from services.scheduler.suites.suite import Generation


def counts_to_json(counts: RunCounts | None) -> str | None:
    return json.dumps(asdict(counts)) if counts else None


def counts_from_json(text: str | None) -> RunCounts | None:
    if text is None:
        return None
    stored: dict[str, Any] = json.loads(text)
    usage = TokenUsage(**stored.pop("usage", {}))
    return RunCounts(
        **{**stored, "tasks": tuple(TaskCounts(**task) for task in stored["tasks"]), "usage": usage}
    )


def price_to_json(price: ModelPrice | None) -> str | None:
    return json.dumps(asdict(price)) if price else None


def price_from_json(text: str | None) -> ModelPrice | None:
    """Postgres gives a number without a fraction back as a whole one, however large."""
    if text is None:
        return None
    stored: dict[str, Any] = json.loads(text)
    cached = stored["cached_input_per_million"]
    return ModelPrice(
        float(stored["input_per_million"]),
        float(stored["output_per_million"]),
        None if cached is None else float(cached),
        stored["currency"],
    )


def generation_to_json(generation: Generation | None) -> str | None:
    return json.dumps(asdict(generation)) if generation else None


def generation_from_json(text: str | None) -> Generation | None:
    if text is None:
        return None
    stored: dict[str, Any] = json.loads(text)
    return Generation(**{**stored, "until": tuple(stored["until"])})


def facts_to_json(facts: Mapping[str, str]) -> str:
    return json.dumps(dict(facts))


def facts_from_json(text: str) -> dict[str, str]:
    stored: dict[str, str] = json.loads(text)
    return stored
