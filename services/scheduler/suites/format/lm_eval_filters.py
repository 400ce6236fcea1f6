"""Filters of lm-evaluation-harness that are Python code: a class, or the function of a `custom` one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proctor.values.scoring import CODED_FILTER
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault
from services.scheduler.suites.format.yaml_document import FunctionName

# Keeps the place of a step by code: it leaves an answer as it is.
_PLACEHOLDER: Mapping[str, object] = {"function": "take_first"}
_FUNCTION = "filter_fn"


@dataclass(frozen=True, slots=True)
class CodedFilter:
    """A step at its place: `path` is that of its name in the file, `options` are those of a class."""

    pipeline: int
    step: int
    name: FunctionName
    path: KeyPath
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class TakenFilters:
    """`pipelines` with placeholders for the coded steps."""

    coded: list[CodedFilter] = field(default_factory=list)
    pipelines: list[object] = field(default_factory=list)
    faults: list[ValueFault] = field(default_factory=list)


def take_coded_filters(pipelines: object) -> TakenFilters:
    taken = TakenFilters()
    for number, pipeline in enumerate(pipelines if isinstance(pipelines, list) else ()):
        if not isinstance(pipeline, dict) or not isinstance(pipeline.get("filter"), list):
            taken.pipelines.append(pipeline)
            continue
        coded = list(_coded(number, pipeline["filter"]))
        places = [each.step for each in coded]
        steps = [_PLACEHOLDER if place in places else step for place, step in enumerate(pipeline["filter"])]
        taken.pipelines.append({**pipeline, "filter": steps})
        taken.coded += coded
        if places and places[-1] - places[0] >= len(places):
            path = ("filter_list", number, "filter", places[-1])
            taken.faults.append(ValueFault(path, "steps by code follow each other, without others between"))
    return taken


def _coded(pipeline: int, steps: list[object]) -> Iterator[CodedFilter]:
    for place, step in enumerate(steps):
        if not isinstance(step, dict):
            continue
        path = ("filter_list", pipeline, "filter", place)
        named, applied = step.get("function"), step.get(_FUNCTION)
        if isinstance(named, FunctionName):
            options = {key: value for key, value in step.items() if key != "function"}
            yield CodedFilter(pipeline, place, named, (*path, "function"), options)
        elif named == CODED_FILTER and isinstance(applied, FunctionName):
            yield CodedFilter(pipeline, place, applied, (*path, _FUNCTION))
