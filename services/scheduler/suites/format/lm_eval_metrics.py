"""Metrics of lm-evaluation-harness that Python code scores, or makes a figure of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.metrics.catalogue import LIKELIHOOD_AGGREGATIONS, METRICS
from proctor.values.metrics.metric import ScoreKind
from services.scheduler.suites.format.metric_checks import NON_OPTION_KEYS, Fields
from services.scheduler.suites.format.suite_document import ValueFault
from services.scheduler.suites.format.yaml_document import FunctionName

PROCESS_RESULTS = "process_results"
# What is a mean of the numbers that there are.
_MEANS = frozenset({None, "mean", "nanmean"})


@dataclass(frozen=True, slots=True)
class CodedMetric:
    """A metric at its place in `metric_list`. `is_native`: only its figure is made by code.

    `summed_up_by`: the name of an aggregation by which what code makes becomes a figure; "": by its mean.
    """

    place: int
    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    function: FunctionName | None = None
    aggregation: FunctionName | None = None
    is_native: bool = False
    less_is_better: bool = False
    summed_up_by: str = ""


@dataclass(slots=True)
class TakenMetrics:
    """`others` are scored and summed up without code, or scored at least."""

    coded: list[CodedMetric] = field(default_factory=list)
    others: list[object] = field(default_factory=list)
    faults: list[ValueFault] = field(default_factory=list)


def take_coded_metrics(uses: object, output_type: str, *, is_processed: bool) -> TakenMetrics:
    """`is_processed`: `process_results` by code gives the values of all metrics."""
    taken = TakenMetrics()
    for place, use in enumerate(uses if isinstance(uses, list) else ()):
        if not isinstance(use, dict) or not isinstance(use.get("metric"), str):
            taken.others.append(use)
            continue
        coded = _coded(place, use, output_type, is_processed=is_processed)
        if coded is None:
            taken.others.append(use)
            continue
        taken.coded.append(coded)
        taken.faults += _faults(coded, use, [each.name for each in taken.coded[:-1]])
        if coded.is_native:
            taken.others.append({key: value for key, value in use.items() if key != "aggregation"})
    return taken


def _coded(place: int, use: Fields, output_type: str, *, is_processed: bool) -> CodedMetric | None:
    named, given = use["metric"], use.get("aggregation")
    aggregation = given if isinstance(given, FunctionName) else None
    function = named if isinstance(named, FunctionName) else None
    name = str(named).rpartition(".")[2] if function else str(named)
    known = METRICS.get(name)
    is_known = known is not None and any(each.output_type == output_type for each in known.inputs)
    if known is not None and aggregation and known.kind is ScoreKind.COUNTS:
        # Such code gets the texts.
        is_known = False
    is_native = is_known and function is None and not is_processed
    if not (is_processed or function or aggregation):
        return None
    options = {} if is_native else {key: use[key] for key in use if key not in NON_OPTION_KEYS}
    made = None if is_processed else function
    usually_more = known is None or known.higher_is_better
    less_is_better = not use.get("higher_is_better", usually_more) and not is_native
    summed_up_by = "" if is_native or aggregation else str(given or (known.aggregation if known else ""))
    if summed_up_by not in LIKELIHOOD_AGGREGATIONS:
        summed_up_by = ""
    return CodedMetric(place, name, options, made, aggregation, is_native, less_is_better, summed_up_by)


def _faults(coded: CodedMetric, use: Fields, earlier: Sequence[str]) -> list[ValueFault]:
    path = ("metric_list", coded.place)
    faults: list[ValueFault] = []
    if coded.name in earlier:
        faults.append(ValueFault((*path, "metric"), f"{coded.name} is there twice"))
    if "," in coded.name or not coded.name.strip():
        faults.append(ValueFault((*path, "metric"), "the name of a metric is a text without commas"))
    is_known = coded.summed_up_by or use.get("aggregation") in _MEANS
    if coded.aggregation is None and not is_known:
        problem = (
            f"{use['aggregation']}: what code scores is summed up by mean, nanmean, a perplexity or code"
        )
        faults.append(ValueFault((*path, "aggregation"), problem))
    return faults
