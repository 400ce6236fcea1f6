"""How the answers to a data set are to be scored, as it was ordered: names settled, options checked."""

import json
import math
from collections.abc import Mapping, Sequence

from services.scheduler.suites.format.metric_catalogue import METRICS, options_of
from services.scheduler.suites.format.metric_options import option_problem
from services.scheduler.suites.suite_errors import InvalidMetric, UnknownMetric
from services.scheduler.suites.task_definition import MetricUse, OutputType

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
