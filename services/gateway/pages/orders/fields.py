"""Parameters of generation as fields of the form: those that an engine takes, with its ranges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.values.generation import Range
from proctor.values.providers.rules import RULES, ProviderRules


@dataclass(frozen=True, slots=True)
class ParameterField:
    """`low` and `high` are inclusive; "" for none."""

    name: str
    label: str
    low: str
    high: str
    step: str
    hint: str


_FIELDS = (
    ParameterField("temperature", "Temperature", "0", "2", "any", "0 to 2; 0 is greedy"),
    ParameterField("top_p", "Top p", "0", "1", "any", "0 to 1"),
    ParameterField("top_k", "Top k", "0", "100", "1", "0 to 100; 0 is no limit"),
    ParameterField("max_tokens", "Max tokens", "1", "", "1", "of an answer"),
    ParameterField("seed", "Seed", "0", "", "1", "rollout n uses seed + n"),
    ParameterField("repetition_penalty", "Repetition penalty", "0", "", "any", "above 0; 1 is none"),
    ParameterField("context_tokens", "Context", "1", "", "1", "in tokens"),
)
NAMES = tuple(field.name for field in _FIELDS)


def fields_of(engine: str) -> Sequence[ParameterField]:
    """All of them for an unknown engine."""
    rules = RULES.get(engine)
    if rules is None:
        return _FIELDS
    return [_narrowed(field, rules) for field in _FIELDS if field.name not in rules.unknown]


def others_of(engine: str) -> Mapping[str, str]:
    """An engine's own parameters for the custom ones, with their ranges in words."""
    extra = RULES[engine].extra if engine in RULES else None
    return {name: _in_words(limits) for name, limits in (extra or {}).items()}


def _narrowed(field: ParameterField, rules: ProviderRules) -> ParameterField:
    if field.name == "temperature" and rules.only_temperature is not None:
        only = f"{rules.only_temperature:g}"
        return ParameterField(field.name, field.label, only, only, "any", f"{rules.name} takes only {only}")
    for limits in rules.ranges:
        if limits.field == field.name:
            low = f"{limits.lowest:g}"
            high = field.high if math.isinf(limits.highest) else f"{limits.highest:.0f}"
            hint = f"{low} to {high}" if high else f"at least {low}"
            return ParameterField(field.name, field.label, low, high, field.step, hint)
    return field


def _in_words(limits: Range | None) -> str:
    if limits is None:
        return ""
    low = f"{limits.lowest:g}"
    return f"from {low}" if math.isinf(limits.highest) else f"{low} to {limits.highest:.10g}"
