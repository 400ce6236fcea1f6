"""Checks that the metrics of a task, or those ordered for a data set, fit what is asked."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from services.scheduler.suites.format.metrics import METRICS, option_problem, options_of
from services.scheduler.suites.format.suite_document import Fault, KeyPath
from services.scheduler.suites.suite import MetricUse, OutputType
from services.scheduler.suites.suite_errors import InvalidMetric, UnknownMetric

Fields = Mapping[str, object]

OWN_FACTS = frozenset({"metric", "aggregation", "higher_is_better"})


"""Keys of a metric that are no options: what the metric is anyway."""


def metric_faults(fields: Fields) -> Iterator[Fault]:
    uses = cast("Sequence[Fields]", fields["metric_list"])
    names = [str(use["metric"]) for use in uses]
    for place, use in enumerate(uses):
        path: KeyPath = ("metric_list", place)
        if names[place] in names[:place]:
            yield Fault((*path, "metric"), f"{names[place]} is there twice")
        yield from _use_faults(fields, use, path)


def _use_faults(fields: Fields, use: Fields, path: KeyPath) -> Iterator[Fault]:
    output_type = OutputType(str(fields["output_type"]))
    name = str(use["metric"])
    metric = METRICS[name]
    if output_type not in metric.output_types:
        yield Fault((*path, "metric"), f"{name} does not fit output_type {output_type}")
        return
    needed = metric.key_needed(output_type)
    if needed and needed not in fields:
        yield Fault((*path, "metric"), f"{name} needs {needed}")
    if metric.is_of_single_labels and isinstance(fields["doc_to_target"], list):
        yield Fault((*path, "metric"), f"{name} has no figure where several choices are right")
    for option in use.keys() - OWN_FACTS - options_of(name, output_type):
        yield Fault((*path, option), f"{name} has no such option for {output_type}")
    problem = option_problem("choices", use["choices"]) if "choices" in use else ""
    if problem:
        yield Fault((*path, "choices"), problem)
    if use.get("aggregation", metric.aggregation) != metric.aggregation:
        yield Fault(
            (*path, "aggregation"), f"{name} is summed up by {metric.aggregation}, and by nothing else"
        )
    if use.get("higher_is_better") is False:
        yield Fault((*path, "higher_is_better"), f"of {name} more is better")


DATASET_METRIC_NAMES: Mapping[str, str] = {"f1": "squad_f1", "rouge": "rougeL_max"}


"""Short names, where what is answered is free text."""


MOST_METRICS = 20

_OUTPUT = OutputType.GENERATE_UNTIL


def supported_metrics() -> tuple[str, ...]:
    """Those that need nothing of a row but its target, the short names last."""
    fitting = [
        name
        for name, metric in METRICS.items()
        if _OUTPUT in metric.output_types and not metric.key_needed(_OUTPUT)
    ]
    return (*fitting, *DATASET_METRIC_NAMES)


def dataset_metrics(uses: Sequence[MetricUse]) -> tuple[MetricUse, ...]:
    """The metrics by their full names, options as JSON with sorted keys. Raises UnknownMetric, InvalidMetric.

    None are as good as any: then answers are kept, and not scored.
    """
    if len(uses) > MOST_METRICS:
        raise InvalidMetric(
            uses[MOST_METRICS].name, f"a run has at most {MOST_METRICS} metrics, not {len(uses)}"
        )
    supported = supported_metrics()
    settled = [_settled(use, supported) for use in uses]
    for place, use in enumerate(settled):
        if use.name in [one.name for one in settled[:place]]:
            raise InvalidMetric(uses[place].name, f"{use.name} is there twice")
    return tuple(settled)


def _settled(use: MetricUse, supported: Sequence[str]) -> MetricUse:
    if use.name not in supported:
        raise UnknownMetric(use.name, supported)
    name, options = DATASET_METRIC_NAMES.get(use.name, use.name), _options(use)
    known = options_of(name, _OUTPUT)
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
        raise InvalidMetric(use.name, f"its options are no JSON: {error}") from error
    if not isinstance(options, dict):
        raise InvalidMetric(use.name, "its options must be a JSON object")
    return options


def _number(word: str) -> float:
    """JSON has no NaN and no infinity, and what is as large cannot be reckoned with."""
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word} is not a number that can be reckoned with")
    return number
