"""The metrics: what each scores and which options it takes, and whether those of a task or an order fit."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from proctor.values.scoring import SHORT_NAMES, MetricUse, OutputType
from services.scheduler.suites.errors import LISTED_CHARACTERS, InvalidMetric, UnknownDatasetMetric, listed
from services.scheduler.suites.format.schema import schema_faults
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault

_CHOICE = frozenset({OutputType.MULTIPLE_CHOICE})
_TEXT = frozenset({OutputType.GENERATE_UNTIL})
_BOTH = _CHOICE | _TEXT
_MATCH_OPTIONS = frozenset({"ignore_case", "ignore_punctuation", "ignore_numbers", "regexes_to_ignore"})
_OVER_ANSWERS = {OutputType.MULTIPLE_CHOICE: "doc_to_answers"}
_AGAINST_WRONG = {OutputType.GENERATE_UNTIL: "doc_to_wrong_target"}
_OVERLAPS = ("bleu", "rouge1", "rouge2", "rougeL")
Fields = Mapping[str, object]

# Keys of a metric that are not options: they may only repeat what the metric is.
NON_OPTION_KEYS = frozenset({"metric", "aggregation", "higher_is_better"})
# Each metric is scored for each answer, and corrected for in each comparison.
MAX_METRICS = 20


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """`aggregation` is the name in lm-evaluation-harness. Higher is better for every metric.

    `needs`: a key that the task must have, or `instead` of it. `is_single_label`: undefined if several
    choices are right.
    """

    output_types: frozenset[OutputType]
    aggregation: str = "mean"
    options: frozenset[str] = frozenset()
    needs: Mapping[OutputType, str] | None = None
    is_single_label: bool = False
    instead: str = ""

    def required_key(self, output_type: OutputType) -> str:
        return (self.needs or {}).get(output_type, "")


METRICS: Mapping[str, MetricSpec] = {
    "acc": MetricSpec(_CHOICE),
    "acc_norm": MetricSpec(_CHOICE),
    "acc_bytes": MetricSpec(_CHOICE),
    "mc2": MetricSpec(_CHOICE),
    "f1": MetricSpec(_CHOICE, "f1", frozenset({"average"}), is_single_label=True),
    "mcc": MetricSpec(_CHOICE, "matthews_corrcoef", is_single_label=True),
    "exact_match": MetricSpec(_BOTH, options=_MATCH_OPTIONS),
    "contains": MetricSpec(_TEXT, options=_MATCH_OPTIONS),
    "regex": MetricSpec(_TEXT, options=frozenset({"pattern", "ignore_case"})),
    "numeric": MetricSpec(_TEXT, options=frozenset({"tolerance", "relative_tolerance"})),
    "choice": MetricSpec(_TEXT, options=frozenset({"choices"})),
    "squad_em": MetricSpec(_BOTH, needs=_OVER_ANSWERS),
    "squad_f1": MetricSpec(_BOTH, needs=_OVER_ANSWERS),
    "pass@1": MetricSpec(_TEXT, needs={OutputType.GENERATE_UNTIL: "code"}, instead="rollout"),
    "reward": MetricSpec(_TEXT, needs={OutputType.GENERATE_UNTIL: "rollout"}),
    "pearson": MetricSpec(_TEXT, "pearson"),
    "spearman": MetricSpec(_TEXT, "spearman"),
    **{f"{overlap}_max": MetricSpec(_TEXT) for overlap in _OVERLAPS},
    **{f"{overlap}_acc": MetricSpec(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
    **{f"{overlap}_diff": MetricSpec(_TEXT, needs=_AGAINST_WRONG) for overlap in _OVERLAPS},
}


def options_of(name: str, output_type: OutputType) -> frozenset[str]:
    """Options of text comparison do not apply to choices."""
    is_text_option = METRICS[name].options is _MATCH_OPTIONS
    return frozenset() if is_text_option and output_type not in _TEXT else METRICS[name].options


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
    uses = cast("Sequence[Fields]", fields["metric_list"])
    names = [str(use["metric"]) for use in uses]
    for index, use in enumerate(uses):
        path: KeyPath = ("metric_list", index)
        if names[index] in names[:index]:
            yield ValueFault((*path, "metric"), f"{names[index]} is there twice")
        yield from _use_faults(fields, use, path)


def _use_faults(fields: Fields, use: Fields, path: KeyPath) -> Iterator[ValueFault]:
    output_type = OutputType(str(fields["output_type"]))
    name = str(use["metric"])
    metric = METRICS[name]
    if output_type not in metric.output_types:
        yield ValueFault((*path, "metric"), f"{name} does not fit output_type {output_type}")
        return
    needed = metric.required_key(output_type)
    if needed and needed not in fields and metric.instead not in fields:
        keys = f"{needed} or {metric.instead}" if metric.instead else needed
        yield ValueFault((*path, "metric"), f"{name} needs {keys}")
    if metric.is_single_label and isinstance(fields["doc_to_target"], list):
        yield ValueFault((*path, "metric"), f"{name} has no figure where several choices are right")
    for option in use.keys() - NON_OPTION_KEYS - options_of(name, output_type):
        yield ValueFault((*path, option), f"{name} has no such option for {output_type}")
    problem = option_problem("choices", use["choices"]) if "choices" in use else ""
    if problem:
        yield ValueFault((*path, "choices"), problem)
    if use.get("aggregation", metric.aggregation) != metric.aggregation:
        yield ValueFault(
            (*path, "aggregation"), f"{name} is summed up by {metric.aggregation}, and by nothing else"
        )
    if use.get("higher_is_better") is False:
        yield ValueFault((*path, "higher_is_better"), f"of {name} more is better")


def supported_metrics() -> tuple[str, ...]:
    """Metrics that need only a row's target, the short names last."""
    output = OutputType.GENERATE_UNTIL
    fitting = [
        name
        for name, metric in METRICS.items()
        if output in metric.output_types and not metric.required_key(output)
    ]
    return (*fitting, *SHORT_NAMES)


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
    return tuple(resolved)


def _resolved(use: MetricUse, supported: Sequence[str]) -> MetricUse:
    if use.name not in supported:
        raise UnknownDatasetMetric(metric=use.name[:LISTED_CHARACTERS], supported=listed(supported))
    name, options = SHORT_NAMES.get(use.name, use.name), _options(use)
    known = options_of(name, OutputType.GENERATE_UNTIL)
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
