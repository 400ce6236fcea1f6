"""Orders as they are stored: JSON, without the priority, which is a column."""

import json
from dataclasses import asdict
from typing import Any

from proctor.values.scoring import MetricUse
from services.scheduler.runs.orders.run_order import (
    GenerationParams,
    Priority,
    PromptForm,
    RunOrder,
    ScoringMethod,
    Truncation,
)


def order_to_json(order: RunOrder) -> str:
    return json.dumps({name: value for name, value in asdict(order).items() if name != "priority"})


def order_from_json(text: str, priority: Priority) -> RunOrder:
    stored: dict[str, Any] = json.loads(text)
    method, form = stored["scoring_method"], stored["prompt_form"]
    return RunOrder(
        **{
            **stored,
            "tasks": tuple(stored["tasks"]),
            "priority": priority,
            "params": GenerationParams(**stored["params"]),
            "scoring_method": ScoringMethod(method) if method else None,
            "truncation": Truncation(stored["truncation"]),
            "prompt_form": PromptForm(form) if form else None,
            "metrics": tuple(MetricUse(**use) for use in stored["metrics"]),
            "line_models": tuple(stored["line_models"]),
        }
    )
