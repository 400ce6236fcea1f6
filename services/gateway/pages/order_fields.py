"""Parameters of generation as fields of the form: those that an engine takes, with its ranges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proctor.values.generation import PARAMETER_RANGES, Range
from proctor.values.providers.rules import RULES, ProviderRules
from services.common.errors import ErrorKind

# Refusals of orders that whoever fills in a form can mend.
REFUSALS = frozenset({ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.CONFLICT, ErrorKind.EXHAUSTED})


@dataclass(frozen=True, slots=True)
class ParameterField:
    """`note` is shown behind the range."""

    label: str
    step: str
    note: str
    limits: Range

    @property
    def name(self) -> str:
        return self.limits.field

    @property
    def low(self) -> str:
        return f"{self.limits.lowest:g}"

    @property
    def high(self) -> str:
        """Empty for none."""
        return "" if math.isinf(self.limits.highest) else f"{self.limits.highest:.10g}"

    @property
    def usual(self) -> str:
        """What holds where nothing is entered; the section says it of the others."""
        return {"repetition_penalty": "1", "seed": "none"}.get(self.name, "default")

    @property
    def hint(self) -> str:
        """The range where it is more than a lowest number, and the note."""
        limits = self.limits
        is_shown = limits.above or limits.lowest < limits.highest < math.inf
        return "; ".join(each for each in (_in_words(limits) if is_shown else "", self.note) if each)


_FIELDS = tuple(
    ParameterField(label, step, note, PARAMETER_RANGES[name])
    for name, label, step, note in (
        ("temperature", "Temperature", "any", "0 is greedy"),
        ("top_p", "Top p", "any", ""),
        ("top_k", "Top k", "1", "0 means no limit"),
        ("max_tokens", "Max tokens", "1", "of an answer"),
        ("seed", "Seed", "1", "rollout n uses seed + n"),
        ("repetition_penalty", "Repetition penalty", "any", "1 is none"),
        ("context_tokens", "Context", "1", "in tokens"),
    )
)
# Fields that are not parameters of generation, by their names.
LABELS: Mapping[str, str] = {
    "name": "Name of the run",
    "tags": "Tags",
    "note": "Note",
    "model": "Model",
    "also": "More models",
    "margin_points": "Equivalent within points",
    "alpha": "Chance of a wrong decision",
    "benchmark": "Suite or data set",
    "tasks": "Tasks",
    "limit": "Limit rows per task",
    "num_fewshot": "Shots",
    "rollouts": "Rollouts",
    "priority": "Priority",
    "max_cost": "Max cost",
    "scoring_method": "Choices are scored by",
    "metric": "Metric",
    "prompt_form": "Prompts are sent as",
    "truncate": "Prompts that are too long",
    "reasoning": "Reasoning of the model",
    "project_id": "Project",
    "custom": "Custom, as JSON",
    "base_url": "Server",
    "completion_window": "Completion window",
    "line_models": "Names of the model in lines",
    "judges": "Judges of the answers",
    "cron": "Times",
    "time_zone": "Time zone",
    "gate_base": "Gate each run against",
    "gate_margin_points": "Accepted drop in points",
    "reuse_answers": "Reuse stored answers",
    "stream_answers": "Stream answers",
}
PARAMETER_LABELS: Mapping[str, str] = {field.name: field.label for field in _FIELDS}
NAMES = tuple(PARAMETER_LABELS)
# Of a data set whose answers are kept only; a form that names no metric offers one where there are targets.
NO_METRIC = "none"


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
    if field.name == "temperature" and (only := rules.only_temperature) is not None:
        return replace(field, limits=Range(field.name, only, only), note=f"{rules.name} takes only {only:g}")
    for limits in rules.ranges:
        if limits.field == field.name:
            return replace(field, limits=field.limits.narrowed_to(limits), note="")
    return field


def _in_words(limits: Range | None) -> str:
    if limits is None:
        return ""
    if math.isinf(limits.highest):
        return f"{'above' if limits.above else 'from'} {limits.lowest:g}"
    return f"{limits.lowest:g} to {limits.highest:.10g}"
