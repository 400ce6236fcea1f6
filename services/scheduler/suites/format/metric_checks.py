"""Checks of the metrics of a task or an order: whether names and options fit, by the catalogue."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.metric import Metric, ScoreKind
from proctor.values.metrics.names import ALIASES, full_name, headline_first, ready_metrics
from proctor.values.scoring import MetricUse, OutputType
from services.scheduler.suites.errors import LISTED_CHARACTERS, InvalidMetric, UnknownDatasetMetric, listed
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault

Fields = Mapping[str, object]

# Keys of a metric that are not options: they may only repeat what the metric is.
NON_OPTION_KEYS = frozenset({"metric", "aggregation", "higher_is_better"})
# Each metric is scored for each answer, and corrected for in each comparison.
MAX_METRICS = 20


def option_problem(option: str, value: object) -> str:
    """Returns the problem of an option's value, "" if it is valid."""
    faults = schema_faults(value, f"metric/properties/{option}")
    if faults:
        return faults[0].problem
    if option != "choices":
        return ""
    bare = [str(one).strip().casefold() for one in cast("Sequence[str]", value)]
    is_distinct = "" not in bare and len(set(bare)) == len(bare)
    return "" if is_distinct else "each needs letters that no other one has, whatever their case"


def metric_faults(fields: Fields) -> Iterator[ValueFault]:
    # None where Python code scores all.
    uses = cast("Sequence[Fields]", fields.get("metric_list", ()))
    names = [str(use["metric"]) for use in uses]
    for index, use in enumerate(uses):
        path: KeyPath = ("metric_list", index)
        if names[index] in names[:index]:
            yield ValueFault((*path, "metric"), f"{names[index]} is there twice")
        yield from _use_faults(fields, use, path)


def _use_faults(fields: Fields, use: Fields, path: KeyPath) -> Iterator[ValueFault]:
    output_type = OutputType(str(fields["output_type"]))
    metric = METRICS[str(use["metric"])]
    name = metric.name
    if not metric.inputs_of(output_type):
        yield ValueFault((*path, "metric"), f"{name} does not fit output_type {output_type}")
        return
    needed = _missing_keys(metric, output_type, fields)
    if needed:
        yield ValueFault((*path, "metric"), f"{name} needs {' or '.join(needed)}")
    if metric.kind is ScoreKind.LABELS and isinstance(fields["doc_to_target"], list):
        yield ValueFault((*path, "metric"), f"{name} has no figure where several choices are right")
    for option in use.keys() - NON_OPTION_KEYS - metric.options_of(output_type).keys():
        yield ValueFault((*path, option), f"{name} has no such option for {output_type}")
    problem = option_problem("choices", use["choices"]) if "choices" in use else ""
    if problem:
        yield ValueFault((*path, "choices"), problem)
    if use.get("aggregation", metric.aggregation) != metric.aggregation:
        yield ValueFault(
            (*path, "aggregation"), f"{name} is summed up by {metric.aggregation}, and by nothing else"
        )
    if use.get("higher_is_better") is False and metric.higher_is_better:
        yield ValueFault((*path, "higher_is_better"), f"of {name} more is better")
    if use.get("higher_is_better") is True and not metric.higher_is_better:
        yield ValueFault((*path, "higher_is_better"), f"of {name} less is better")


def _missing_keys(metric: Metric, output_type: OutputType, fields: Fields) -> Sequence[str]:
    """The keys of which a task needs one for the metric and has none."""
    keys = [each.task_key for each in metric.inputs_of(output_type)]
    return () if any(not key or key in fields for key in keys) else keys


def supported_metrics() -> tuple[str, ...]:
    """Metrics that need only a row's target, their aliases last."""
    names = [metric.name for metric in ready_metrics(OutputType.GENERATE_UNTIL)]
    return (*names, *(alias for alias, name in ALIASES.items() if name in names))


def resolve_dataset_metrics(uses: Sequence[MetricUse]) -> tuple[MetricUse, ...]:
    """Returns metrics with full names and options as JSON with sorted keys.

    Without metrics, answers are stored but not scored. Raises `UnknownMetric`, `InvalidMetric`.
    """
    if len(uses) > MAX_METRICS:
        raise InvalidMetric(
            uses[MAX_METRICS].name, f"a run has at most {MAX_METRICS} metrics, not {len(uses)}"
        )
    supported = supported_metrics()
    resolved = [_resolved(use, supported) for use in uses]
    for index, use in enumerate(resolved):
        if use.name in [one.name for one in resolved[:index]]:
            raise InvalidMetric(uses[index].name, f"{use.name} is there twice")
    return headline_first(resolved)


def _resolved(use: MetricUse, supported: Sequence[str]) -> MetricUse:
    if use.name not in supported:
        raise UnknownDatasetMetric(metric=use.name[:LISTED_CHARACTERS], supported=listed(supported))
    output_type, options = OutputType.GENERATE_UNTIL, _options(use)
    name = full_name(use.name, [metric.name for metric in ready_metrics(output_type)])
    known = METRICS[name].options_of(output_type)
    for key, value in sorted(options.items()):
        advice = f"it has {', '.join(sorted(known))}" if known else "it has none"
        problem = option_problem(key, value) if key in known else f"there is no such option; {advice}"
        if problem:
            raise InvalidMetric(use.name, problem, f"{key:.80}")
    return MetricUse(name, json.dumps(options, sort_keys=True) if options else "")


def _options(use: MetricUse) -> Mapping[str, object]:
    try:
        options = json.loads(use.options_json or "{}", parse_constant=_number, parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise InvalidMetric(use.name, f"its options are not JSON: {error}") from error
    if not isinstance(options, dict):
        raise InvalidMetric(use.name, "its options must be a JSON object")
    return options


def _number(word: str) -> float:
    """Refuses NaN, Infinity and numbers that overflow to it."""
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word} is not a finite number")
    return number
