"""How a task's answers are scored: compiled from the form that is stored to the one that scorers take."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from proctor.values.metrics.catalogue import LIKELIHOOD_AGGREGATIONS, METRICS
from proctor.values.metrics.metric import Metric, MetricInput, ScoreKind
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.scoring import CODED_FILTER, MetricUse, OutputType, ScoringMethod, TaskScoring
from services.results.scoring.answer_filters import (
    FALLBACK,
    FILTERS,
    MAJORITY_VOTE,
    MAP,
    TAKE_FIRST_K,
    FilterPipeline,
    FilterStep,
)
from services.results.scoring.answer_rules import AnswerRule, MetricOptions, read_rule
from services.results.scoring.filters.choice_filter import ChoiceFilter
from services.results.scoring.score import Vote
from services.results.scoring.stated_verdict import StatedVerdict
from services.results.scoring.text_match import TextMatch
from services.results.scoring.timed_regex import SlowTime, TimedRegex

# A worker has judged the answer already.
EXECUTED = frozenset({MetricInput.CODE, MetricInput.ROLLOUT})
_REGEX_OPTIONS = frozenset({"regex_pattern", "group_select", "fallback"})
_QUICK_PIPELINES = 8
_IGNORED_OPTIONS = frozenset({"ignore_case", "ignore_punctuation", "regexes_to_ignore"})
FILTER_OPTIONS: Mapping[str, frozenset[str]] = {
    "regex": _REGEX_OPTIONS,
    "multi_choice_regex": _REGEX_OPTIONS | _IGNORED_OPTIONS,
    MAP: frozenset({"mapping_dict", "default_value"}),
}
# The aggregation of a metric in a log whose figure is the mean of its scores, whatever ours is.
MEAN = "mean"
# Three time-outs of code: batches of a run whose code never ends would keep those of others waiting.
MAX_LOST_SECONDS = 900.0
# The model generates its choice.
GENERATING_METHODS = frozenset({ScoringMethod.GENERATE, ScoringMethod.CONSTRAINED})


class InvalidScoring(ValueError):
    """A task's scoring cannot be understood: an option, a filter or a metric that does not exist."""


class Average(StrEnum):
    """How f1 averages over labels: label 1 only, all labels alike, all answers, or by frequency."""

    BINARY = "binary"
    MACRO = "macro"
    MICRO = "micro"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class CompiledMetric:
    """A metric by name. `match`: what exact_match and contains ignore; `average`: for f1.

    `rule`: how a metric with a rule of its own reads answers. `coded`: its own entry, where Python code of
    the task scores; then `function` is the metric's, with its `options`. `aggregation`: code that makes the
    figure. `logged` is the entry of a metric that only another tool's log has.
    """

    name: str
    match: TextMatch = field(default_factory=TextMatch)
    average: Average = Average.BINARY
    rule: AnswerRule | None = None
    coded: Metric | None = None
    function: str = ""
    options: MetricOptions = field(default_factory=dict, hash=False)
    aggregation: str = ""
    logged: Metric | None = None

    @property
    def entry(self) -> Metric:
        """Its entry in the catalogue, or what stands for one."""
        return self.coded or self.logged or METRICS[self.name]

    @property
    def is_counted(self) -> bool:
        """Its figure is made of what all answers count together, here."""
        return self.entry.kind is ScoreKind.COUNTS

    @property
    def is_of_stored_values(self) -> bool:
        """Its figure is made of values that answers have beside their scores."""
        return self.is_counted or bool(self.aggregation)

    @cached_property
    def is_executed(self) -> bool:
        return EXECUTED.issuperset(self.entry.inputs)


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """A metric over one way to read the answer. `key` names it in scores and figures."""

    key: str
    metric: CompiledMetric
    pipeline: FilterPipeline

    @property
    def has_numbers(self) -> bool:
        """Every sample has a score of its own; else the figure is one of all samples together."""
        return self.metric.entry.kind.is_of_each_answer and not self.metric.aggregation

    @property
    def names(self) -> tuple[str, str]:
        """What it is called: its key and, through whatever filter it is read, its name."""
        return self.key, self.metric.name


@dataclass(frozen=True)
class CompiledScoring:
    """How answers to a task are scored. `is_generated`: the model generates its choice in words."""

    output_type: OutputType
    metrics: tuple[CompiledMetric, ...]
    filters: tuple[FilterPipeline, ...] = ()
    target_delimiter: str = " "
    is_generated: bool = False
    keeps_reasoning: bool = False
    process_results: str = ""
    code_digest: str = ""
    code_time: SlowTime = field(default_factory=lambda: SlowTime(MAX_LOST_SECONDS), compare=False)
    """What is left of the time for answers at which Python code of the task ends without a value."""

    @cached_property
    def is_loglikelihood(self) -> bool:
        return self.output_type is not OutputType.GENERATE_UNTIL and not self.is_generated

    @cached_property
    def quick_characters(self) -> float:
        """Any answer of so many characters is scored within milliseconds, most in microseconds; -1: none is.

        By log-probabilities, as executed already, or by equality, perhaps of what a pattern finds.
        """
        if self.is_loglikelihood:
            return math.inf
        compares = len(self.pipelines) <= _QUICK_PIPELINES and all(
            metric.coded
            or metric.is_executed
            or (metric.name == "exact_match" and metric.match == TextMatch())
            for metric in self.metrics
        )
        if self.output_type is not OutputType.GENERATE_UNTIL or not compares:
            return -1
        return min((pipeline.quick_characters for pipeline in self.pipelines), default=math.inf)

    @property
    def needs_target(self) -> bool:
        """Whether any metric compares: a verdict is only read."""
        return not all(isinstance(metric.rule, StatedVerdict) for metric in self.metrics)

    @cached_property
    def is_unscored(self) -> bool:
        """Answers are stored and not compared with anything."""
        return self.output_type is OutputType.GENERATE_UNTIL and not self.metrics

    @cached_property
    def coded_metrics(self) -> tuple[CompiledMetric, ...]:
        """Those that Python code of the task scores, beside or instead of what is scored here."""
        return tuple(metric for metric in self.metrics if metric.coded)

    @property
    def averages_over_labels(self) -> bool:
        """A figure depends on how many labels there are, whether they occur or not."""
        return any(metric.name == "f1" and metric.average is Average.MACRO for metric in self.metrics)

    @cached_property
    def aggregated_metrics(self) -> "tuple[ScoredMetric, ...]":
        """Those whose figure Python code of the task makes of what all answers score."""
        return tuple(scored for scored in self.scored_metrics if scored.metric.aggregation)

    @cached_property
    def counted_metrics(self) -> "tuple[ScoredMetric, ...]":
        return tuple(scored for scored in self.scored_metrics if scored.metric.is_counted)

    @property
    def needs_stored_values(self) -> bool:
        """A figure of it is made of values that answers have beside their scores."""
        return bool(self.aggregated_metrics or self.counted_metrics)

    @cached_property
    def pipelines(self) -> tuple[FilterPipeline, ...]:
        """The ways to read an answer; log-probabilities are read in one way."""
        return (FilterPipeline(),) if self.is_loglikelihood or not self.filters else self.filters

    @property
    def has_code(self) -> bool:
        """Python code of the task filters answers, or scores them."""
        return bool(self.coded_metrics or self.coded_pipelines)

    @cached_property
    def coded_pipelines(self) -> tuple[FilterPipeline, ...]:
        """Those in which Python code of the task reads the answer."""
        return tuple(pipeline for pipeline in self.pipelines if pipeline.coded_steps)

    @cached_property
    def scored_metrics(self) -> tuple[ScoredMetric, ...]:
        """Metrics in the order of a summary; those of several filters read `metric,filter`."""
        has_several = len(self.pipelines) > 1
        return tuple(
            ScoredMetric(f"{metric.name},{pipeline.name}" if has_several else metric.name, metric, pipeline)
            for pipeline in self.pipelines
            for metric in self.metrics
        )


def metric_names(scoring: CompiledScoring) -> tuple[str, ...]:
    """The keys of a score, in the order of a summary."""
    return tuple(scored.key for scored in scoring.scored_metrics)


_MATCH_OPTIONS = frozenset(field.name for field in fields(TextMatch))


def read_metric(name: str, options_json: str, slow_time: SlowTime | None = None) -> CompiledMetric:
    """Raises InvalidScoring. Whether the metric fits the answers is checked when one is scored."""
    if name not in METRICS:
        raise InvalidScoring(f"no metric {name!r}")
    try:
        options = dict(json.loads(options_json or "{}"))
        # An unknown option is refused. Without it the figure would be that of another metric.
        if unknown := options.keys() - {option.name for option in METRICS[name].options}:
            raise InvalidScoring(f"metric {name!r} has no option {min(unknown)!r}")
        rule = read_rule(name, options, slow_time or SlowTime())
        average = Average(options.get("average", Average.BINARY))
        match = TextMatch() if rule else _text_match(options, slow_time)
    except (ValueError, TypeError, RecursionError, re.error) as error:
        raise InvalidScoring(f"options of metric {name!r}: {error}") from error
    return CompiledMetric(name, match, average, rule)


def _text_match(options: Mapping[str, Any], slow_time: SlowTime | None) -> TextMatch:
    given = {name: value for name, value in options.items() if name in _MATCH_OPTIONS}
    regexes = tuple(TimedRegex(regex, slow_time) for regex in given.pop("regexes_to_ignore", ()))
    return TextMatch(**given, regexes_to_ignore=regexes)


def read_filters(filters_json: str, slow_time: SlowTime | None = None) -> tuple[FilterPipeline, ...]:
    """Read lm-evaluation-harness's `filter_list`: `[{"name": …, "filter": [{"function": …, …}]}]`."""
    if not filters_json:
        return ()
    try:
        pipelines = tuple(
            _pipeline(one["name"], one["filter"], slow_time) for one in json.loads(filters_json)
        )
    except InvalidScoring:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, re.error) as error:
        raise InvalidScoring(f"filters: {error}") from error
    if len({pipeline.name for pipeline in pipelines}) < len(pipelines):
        raise InvalidScoring("two filters have the same name")
    return pipelines


def _pipeline(name: str, filters: Sequence[MetricOptions], slow_time: SlowTime | None) -> FilterPipeline:
    functions = [options["function"] for options in filters]
    if MAJORITY_VOTE in functions[:-1]:
        raise InvalidScoring(f"filter {name!r}: majority_vote is the last step")
    steps = [
        _step(options, slow_time)
        for options in filters
        if options["function"] not in (MAJORITY_VOTE, TAKE_FIRST_K)
    ]
    return FilterPipeline(name, tuple(steps), _vote(filters) if MAJORITY_VOTE in functions else None)


def _vote(filters: Sequence[MetricOptions]) -> Vote:
    voters = MAX_ROLLOUTS
    for options in filters:
        if options["function"] == TAKE_FIRST_K:
            k = options["k"]
            if not isinstance(k, int) or k < 1:
                raise InvalidScoring(f"filter {TAKE_FIRST_K!r}: k is a whole number from 1")
            voters = min(voters, k)
    return Vote(voters, counts_unread=bool(filters[-1].get("unparsed_votes", False)))


def _step(options: MetricOptions, slow_time: SlowTime | None) -> FilterStep:
    function = str(options["function"])
    if function == CODED_FILTER:
        given = options["options"]
        if not isinstance(given, dict):
            raise InvalidScoring(f"options of the filter {function!r} must be a mapping")
        return FilterStep(function, code=str(options["code"]), code_options=given)
    if function not in FILTERS:
        raise InvalidScoring(f"no filter {function!r}")
    unknown = set(options) - {"function"} - FILTER_OPTIONS.get(function, frozenset())
    if unknown:
        raise InvalidScoring(f"filter {function!r} has no option {min(unknown)!r}")
    if function not in FILTER_OPTIONS:
        return FilterStep(function)
    if function == MAP:
        mapping = options.get("mapping_dict", {})
        if not isinstance(mapping, dict):
            raise InvalidScoring("mapping_dict must be a mapping")
        return FilterStep(function, mapping=mapping, default=options.get("default_value"))
    group_select = options.get("group_select", 0)
    if not isinstance(group_select, int):
        raise InvalidScoring("group_select must be a whole number")
    regex = TimedRegex(str(options["regex_pattern"]), slow_time)
    fallback = str(options.get("fallback", FALLBACK))
    choices = _choice_filter(options, slow_time) if function == "multi_choice_regex" else None
    return FilterStep(function, regex, group_select, fallback, choices)


def _choice_filter(options: MetricOptions, slow_time: SlowTime | None) -> ChoiceFilter:
    ignored = options.get("regexes_to_ignore", ())
    if not isinstance(ignored, list | tuple):
        raise InvalidScoring("regexes_to_ignore must be a list of patterns")
    return ChoiceFilter(
        bool(options.get("ignore_case", False)),
        bool(options.get("ignore_punctuation", False)),
        tuple(TimedRegex(str(each), slow_time) for each in ignored),
    )


def compile_scoring(
    scoring: TaskScoring,
    method: ScoringMethod | None = ScoringMethod.LOGLIKELIHOOD,
    slow_time: SlowTime | None = None,
) -> CompiledScoring:
    """Raises InvalidScoring. `slow_time` is shared by the patterns of all tasks of a run.

    Where the model generates its choice, metrics that need log-probabilities are left out.
    """
    is_generated = scoring.output_type is OutputType.MULTIPLE_CHOICE and method in GENERATING_METHODS
    slow_time = slow_time or SlowTime()
    compiled = _logged_metric if scoring.is_logged else _compiled_metric
    metrics = [compiled(use, scoring, slow_time) for use in scoring.metrics]
    drops = is_generated and not scoring.is_logged
    filters = read_filters(scoring.filters_json, slow_time)
    if not scoring.code_digest and any(pipeline.coded_steps for pipeline in filters):
        raise InvalidScoring(f"a filter {CODED_FILTER!r} is Python code of the task, which is not used here")
    counted = next((metric.name for metric in metrics if metric.is_counted), "")
    if counted and any(pipeline.is_majority for pipeline in filters):
        raise InvalidScoring(f"{counted} is of all answers, and majority_vote leaves one of each sample")
    return CompiledScoring(
        scoring.output_type,
        tuple(metric for metric in metrics if not (drops and metric.entry.needs_logprobs)),
        filters,
        scoring.target_delimiter,
        is_generated,
        scoring.keeps_reasoning,
        scoring.process_results,
        scoring.code_digest,
    )


def _logged_metric(use: MetricUse, scoring: TaskScoring, slow_time: SlowTime) -> CompiledMetric:
    """One of ours by its name, whose figure is made as ours is, or a mean of what the log has."""
    known = METRICS.get(use.name)
    # Of counts a log has log-probabilities with what they are divided by.
    is_whole = known and (known.kind is not ScoreKind.COUNTS or known.aggregation in LIKELIHOOD_AGGREGATIONS)
    if is_whole and use.aggregation != MEAN:
        return read_metric(use.name, use.options_json, slow_time)
    is_more = not use.less_is_better and (known is None or known.higher_is_better)
    entry = Metric(use.name, (_needed_by(scoring),), "As the log has it.", higher_is_better=is_more)
    return CompiledMetric(use.name, logged=entry)


def _compiled_metric(use: MetricUse, scoring: TaskScoring, slow_time: SlowTime) -> CompiledMetric:
    known = METRICS.get(use.name)
    is_known = known is not None and bool(known.inputs_of(scoring.output_type))
    if known is not None and use.aggregation and known.kind is ScoreKind.COUNTS:
        # Such code gets the texts, as in lm-evaluation-harness.
        is_known = False
    if not (scoring.process_results or use.function or (use.aggregation and not is_known)):
        return replace(read_metric(use.name, use.options_json, slow_time), aggregation=use.aggregation)
    is_counted = use.aggregation in LIKELIHOOD_AGGREGATIONS
    entry = Metric(
        use.name,
        (_needed_by(scoring),),
        "What Python code of the task makes of an answer.",
        ScoreKind.COUNTS if is_counted else ScoreKind.GRADED,
        aggregation=use.aggregation if is_counted else "mean",
        higher_is_better=not use.less_is_better,
    )
    return CompiledMetric(
        use.name,
        coded=entry,
        function=use.function,
        options=json.loads(use.options_json or "{}"),
        aggregation="" if is_counted else use.aggregation,
    )


def _needed_by(scoring: TaskScoring) -> MetricInput:
    """What code of the task, or another tool, scores."""
    return MetricInput.TEXT if scoring.output_type is OutputType.GENERATE_UNTIL else MetricInput.LOGPROBS
