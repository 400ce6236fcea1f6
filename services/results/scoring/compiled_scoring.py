"""How a task's answers are scored, in the form that the scorers take: metrics, filters, choices."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from proctor.values.scoring import OutputType
from services.results.scoring.answer_filters import FilterPipeline
from services.results.scoring.answer_rules import AnswerRule
from services.results.scoring.text_match import TextMatch


class Average(StrEnum):
    """How f1 averages over labels: label 1 only, all labels alike, all answers, or by frequency."""

    BINARY = "binary"
    MACRO = "macro"
    MICRO = "micro"
    WEIGHTED = "weighted"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by name. `match`: what exact_match and contains ignore; `average`: for f1.

    `rule`: how a metric with a rule of its own reads answers.
    """

    name: str
    match: TextMatch = field(default_factory=TextMatch)
    average: Average = Average.BINARY
    rule: AnswerRule | None = None


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """A metric over one way to read the answer. `key` names it in scores and figures."""

    key: str
    metric: Metric
    pipeline: FilterPipeline


@dataclass(frozen=True)
class CompiledScoring:
    """How answers to a task are scored. `is_generated`: the model generates its choice in words."""

    output_type: OutputType
    metrics: tuple[Metric, ...]
    filters: tuple[FilterPipeline, ...] = ()
    target_delimiter: str = " "
    is_generated: bool = False

    @property
    def is_loglikelihood(self) -> bool:
        return self.output_type is OutputType.MULTIPLE_CHOICE and not self.is_generated

    @property
    def is_unscored(self) -> bool:
        """Answers are stored and not compared with anything."""
        return self.output_type is OutputType.GENERATE_UNTIL and not self.metrics

    @property
    def averages_over_labels(self) -> bool:
        """A figure depends on how many labels there are, whether they occur or not."""
        return any(metric.name == "f1" and metric.average is Average.MACRO for metric in self.metrics)

    @cached_property
    def pipelines(self) -> tuple[FilterPipeline, ...]:
        """The ways to read an answer; log-probabilities are read in one way."""
        return (FilterPipeline(),) if self.is_loglikelihood or not self.filters else self.filters

    @cached_property
    def scored_metrics(self) -> tuple[ScoredMetric, ...]:
        """In the order of a summary; metrics of several filters read `metric,filter`."""
        has_several = len(self.pipelines) > 1
        return tuple(
            ScoredMetric(f"{metric.name},{pipeline.name}" if has_several else metric.name, metric, pipeline)
            for pipeline in self.pipelines
            for metric in self.metrics
        )


class InvalidScoring(ValueError):
    """A task's scoring cannot be understood: an option, a filter or a metric that does not exist."""


def metric_names(scoring: CompiledScoring) -> tuple[str, ...]:
    """The keys of a score, in the order of a summary."""
    return tuple(scored.key for scored in scoring.scored_metrics)
