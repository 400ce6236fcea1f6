"""The conditions of an evaluation: only runs under equal conditions are ranked together."""

import hashlib
from dataclasses import dataclass, replace

from proctor.values.metrics.names import PASSES, is_right_or_wrong
from proctor.values.scoring import MetricUse, OutputType, ScoringMethod
from services.results.runs.run_plan import UNSPECIFIED, RunPlan
from services.results.statistics.metric_names import SCORE

# They are shown as one line; longer ones are distinguished by their digest.
_MAX_CHARACTERS = 120

# A metric by name, and its options as words; "" for none.
MetricRule = tuple[str, str]


@dataclass(frozen=True, slots=True)
class EvaluationConditions:
    """`num_fewshot` None: each task has its own; `limit` None: all rows.

    `metrics` has those of a run over a data set, whose order names them, the main one first. The version of a
    suite decides how it is scored.
    """

    scoring_method: ScoringMethod | None
    num_fewshot: int | None = None
    suite_version: int = 0
    limit: int | None = None
    missing_tasks: tuple[str, ...] = ()
    stand_in_tasks: tuple[str, ...] = ()
    is_truncated_left: bool = False
    metrics: tuple[MetricRule, ...] = ()
    keeps_reasoning: bool = False

    def of_metric(self, metric: str) -> "EvaluationConditions":
        """The conditions of one figure: of the metrics only those that it rests on."""
        return replace(self, metrics=self._metrics_of(metric)) if self.metrics else self

    def _metrics_of(self, metric: str) -> tuple[MetricRule, ...]:
        name = metric.partition(",")[0]
        if name == SCORE:
            return self.metrics[:1]
        if name.startswith(PASSES):
            return tuple(rule for rule in self.metrics if is_right_or_wrong(rule[0]))[:1]
        return tuple(rule for rule in self.metrics if rule[0] == name)

    @property
    def flaws(self) -> tuple[str, ...]:
        """Why the run is not ranked with whole ones, however those were scored."""
        found = (
            self.limit_flaw,
            f"stand-in rows: {', '.join(self.stand_in_tasks)}" if self.stand_in_tasks else "",
            f"without tasks: {', '.join(self.missing_tasks)}" if self.missing_tasks else "",
            "prompts cut from the left" if self.is_truncated_left else "",
        )
        return tuple(flaw for flaw in found if flaw)

    @property
    def limit_flaw(self) -> str:
        return "" if self.limit is None else f"limit {self.limit}"

    def limit_difference(self, other: "EvaluationConditions") -> str:
        """The phrase where limited runs are included: there another limit is a difference, and no flaw."""
        return "" if self.limit == other.limit else f"{_rows(self.limit)} instead of {_rows(other.limit)}"

    @property
    def is_whole(self) -> bool:
        return not self.flaws

    @property
    def text(self) -> str:
        """Equal for equal conditions only."""
        way = (
            self.scoring_method or UNSPECIFIED,
            _shots(self.num_fewshot),
            f"suite version {self.suite_version}",
        )
        kept = (_reasoning(is_kept=True),) if self.keeps_reasoning else ()
        return "; ".join((*way, *map(_rule, self.metrics), *kept, *self.flaws))

    def differences(self, other: "EvaluationConditions") -> tuple[str, ...]:
        """The differences to other conditions, a phrase each; flaws and limits are not among them."""
        found = (
            (self.scoring_method, other.scoring_method, f"scored by {self.scoring_method or UNSPECIFIED}"),
            (self.num_fewshot, other.num_fewshot, _shots(self.num_fewshot)),
            (self.suite_version, other.suite_version, f"suite version {self.suite_version}"),
            (
                self.keeps_reasoning,
                other.keeps_reasoning,
                _reasoning(is_kept=self.keeps_reasoning),
            ),
            (self.metrics, other.metrics, f"scored by {', '.join(map(_rule, self.metrics))}"),
        )
        return tuple(phrase for own, others, phrase in found if own != others)


def conditions_of(plan: RunPlan) -> EvaluationConditions:
    """A run whose tasks are all free text counts as generated, whatever method was ordered for choices."""
    is_generated = all(scoring.output_type is OutputType.GENERATE_UNTIL for scoring in plan.scorings)
    return EvaluationConditions(
        scoring_method=ScoringMethod.GENERATE if is_generated else plan.scoring_method,
        num_fewshot=plan.facts.num_fewshot,
        suite_version=plan.facts.suite_version,
        limit=plan.facts.limit,
        missing_tasks=plan.facts.missing_tasks,
        stand_in_tasks=tuple(task.task for task in plan.tasks if task.provenance.is_stand_in),
        is_truncated_left=plan.is_truncated_left,
        metrics=_rules(plan) if plan.facts.is_of_dataset else (),
        keeps_reasoning=any(task.scoring.keeps_reasoning for task in plan.tasks),
    )


def _rules(plan: RunPlan) -> tuple[MetricRule, ...]:
    return tuple(_named(use) for task in plan.tasks for use in task.scoring.metrics)


def _named(use: MetricUse) -> MetricRule:
    """Equal for equal options only, however long they are: conditions are part of a key."""
    if len(use.options_json) <= _MAX_CHARACTERS:
        return use.name, use.options_json
    digest = hashlib.sha256(use.options_json.encode()).hexdigest()
    return use.name, f"{use.options_json[:_MAX_CHARACTERS]}… (SHA-256 {digest[:16]})"


def _rule(rule: MetricRule) -> str:
    return " ".join(part for part in rule if part)


def _reasoning(*, is_kept: bool) -> str:
    return "reasoning scored with the answer" if is_kept else "reasoning left out"


def _rows(limit: int | None) -> str:
    return "all rows" if limit is None else f"limit {limit}"


def _shots(num_fewshot: int | None) -> str:
    if num_fewshot is None:
        return "shots as each task says"
    return "1 shot" if num_fewshot == 1 else f"{num_fewshot} shots"
