"""The conditions of a closed run: only runs under equal conditions are ranked together."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from proctor.values.metrics.names import PASSES, is_right_or_wrong
from proctor.values.scoring import OutputType, ScoringMethod
from services.results.runs.conditions import (
    CONDITIONS,
    METRICS,
    NONE,
    Condition,
    EvaluatedRun,
    MetricRule,
    metric_rules,
    rules_in_words,
    values_of,
)
from services.results.statistics.metric_names import SCORE


@dataclass(frozen=True, slots=True)
class EvaluationConditions:
    """`values`: of each condition by its name. `num_fewshot` as ordered; None: each task has its own.

    `metrics` has those of a run over a data set, whose order names them, the main one first.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    scoring_method: ScoringMethod | None = None
    num_fewshot: int | None = None
    metrics: tuple[MetricRule, ...] = ()

    def of_metric(self, metric: str) -> "EvaluationConditions":
        """The conditions of one figure: of the metrics only those that it rests on."""
        if not self.metrics:
            return self
        return self.with_values({METRICS: rules_in_words(self._metrics_of(metric))})

    def _metrics_of(self, metric: str) -> tuple[MetricRule, ...]:
        name = metric.partition(",")[0]
        if name == SCORE:
            return self.metrics[:1]
        if name.startswith(PASSES):
            return tuple(rule for rule in self.metrics if is_right_or_wrong(rule[0]))[:1]
        return tuple(rule for rule in self.metrics if rule[0] == name)

    def value(self, condition: str) -> str:
        return self.values.get(condition, NONE)

    def with_values(self, values: Mapping[str, str]) -> "EvaluationConditions":
        return replace(self, values={**self.values, **values})

    @property
    def key(self) -> str:
        """Equal for equal conditions only."""
        listed = [self.value(one.name) for one in CONDITIONS]
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()

    @property
    def between_models(self) -> tuple[str, ...]:
        """The values that figures of two models must have in common to be ranked together."""
        return tuple(self.value(one.name) for one in CONDITIONS if not one.is_of_model)

    @property
    def flaws(self) -> tuple[str, ...]:
        """The names of conditions that keep a run from being ranked unless they are asked for."""
        return tuple(one.name for one in self._unusual if one.is_needed)

    @property
    def unusual_count(self) -> int:
        """How many conditions an order chose by itself."""
        return sum(1 for _ in self._unusual)

    @property
    def _unusual(self) -> Iterator[Condition]:
        return (one for one in CONDITIONS if one.usual and self.value(one.name) not in one.usual)

    def differences(self, other: "EvaluationConditions") -> tuple[str, ...]:
        """The differences to the conditions of another model, a phrase each, without those that follow."""
        differing = [
            one for one in CONDITIONS if not one.is_of_model and self.value(one.name) != other.value(one.name)
        ]
        names = {one.name for one in differing}
        return tuple(
            f"{one.name} {self.value(one.name)} instead of {other.value(one.name)}"
            for one in differing
            if not names.intersection(one.follows)
        )


def conditions_of(run: EvaluatedRun) -> EvaluationConditions:
    """A run whose tasks are all free text counts as generated, whatever method was ordered for choices."""
    plan = run.plan
    is_generated = all(scoring.output_type is OutputType.GENERATE_UNTIL for scoring in plan.scorings)
    return EvaluationConditions(
        values=values_of(run),
        scoring_method=ScoringMethod.GENERATE if is_generated else plan.scoring_method,
        num_fewshot=plan.facts.num_fewshot,
        metrics=metric_rules(plan) if plan.facts.is_of_dataset else (),
    )
