"""How the answers to a data set are to be scored, as it was ordered: names settled, options checked."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from services.scheduler.suites.format.metric_catalogue import METRICS, options_of
from services.scheduler.suites.format.metric_checks import metric_faults
from services.scheduler.suites.format.suite_document import Fault
from services.scheduler.suites.format.yaml_schema import schema_faults
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
    written = []
    for use in uses:
        if use.name not in supported:
            raise UnknownMetric(use.name, supported)
        written.append(_fields(use))
    for fault in _faults(written):
        place, option = cast("int", fault.path[1]), ".".join(str(part) for part in fault.path[2:])
        raise InvalidMetric(uses[place].name, fault.problem, "" if option == "metric" else option)
    return tuple(_settled(fields) for fields in written)


def _fields(use: MetricUse) -> Mapping[str, object]:
    """A metric as a suite file has it."""
    name, options = DATASET_METRIC_NAMES.get(use.name, use.name), _options(use)
    known = options_of(name, _OUTPUT)
    for key in sorted(options.keys() - known):
        advice = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise InvalidMetric(use.name, f"there is no such option; {advice}", f"{key:.80}")
    return {"metric": name, **options}


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


def _faults(written: Sequence[Mapping[str, object]]) -> Iterator[Fault]:
    """What is wrong with the values, before what of them does not fit."""
    for place, fields in enumerate(written):
        for fault in schema_faults(fields, "metric"):
            yield Fault(("metric_list", place, *fault.path), fault.problem)
    task = {"output_type": _OUTPUT.value, "doc_to_target": "target", "metric_list": written}
    yield from metric_faults(task)


def _settled(fields: Mapping[str, object]) -> MetricUse:
    options = {key: value for key, value in fields.items() if key != "metric"}
    return MetricUse(str(fields["metric"]), json.dumps(options, sort_keys=True) if options else "")
