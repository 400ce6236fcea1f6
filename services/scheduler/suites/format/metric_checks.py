"""Whether the metrics of a task fit what it asks and expects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from services.scheduler.suites.format.metric_catalogue import METRICS, options_of
from services.scheduler.suites.format.metric_options import option_problem
from services.scheduler.suites.format.suite_document import Fault, Path
from services.scheduler.suites.task_definition import OutputType

Fields = Mapping[str, object]

OWN_FACTS = frozenset({"metric", "aggregation", "higher_is_better"})
"""Keys of a metric that are no options: what the metric is anyway."""


def metric_faults(fields: Fields) -> Iterator[Fault]:
    uses = cast("Sequence[Fields]", fields["metric_list"])
    names = [str(use["metric"]) for use in uses]
    for place, use in enumerate(uses):
        path: Path = ("metric_list", place)
        if names[place] in names[:place]:
            yield Fault((*path, "metric"), f"{names[place]} is there twice")
        yield from _use_faults(fields, use, path)


def _use_faults(fields: Fields, use: Fields, path: Path) -> Iterator[Fault]:
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
