"""Filters of lm-evaluation-harness: those that are Python code, and those of several answers of a row."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.scoring import CODED_FILTER
from services.scheduler.suites.format.suite_document import KeyPath, ValueFault
from services.scheduler.suites.format.task_checks import CHOICE_FILTER
from services.scheduler.suites.format.yaml_document import FunctionName

# Keeps the place of a step by code: it leaves an answer as it is.
_PLACEHOLDER: Mapping[str, object] = {"function": "take_first"}
_FUNCTION = "filter_fn"
_PATTERN_FILTERS = ("regex", CHOICE_FILTER)
_DEFAULT_PATTERN = r"#### (\-?[0-9\.\,]+)"
_VOTE, _FIRST, _FIRST_K = "majority_vote", "take_first", "take_first_k"
# The vote of one.
_ONLY_FIRST: Sequence[Mapping[str, object]] = ({"function": _FIRST_K, "k": 1}, {"function": _VOTE})
# There its fallback is a text as any other.
_VOTE_OF_ALL: Mapping[str, object] = {"function": _VOTE, "unparsed_votes": True}


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


def is_voted(pipelines: Sequence[object]) -> bool:
    """Whether a vote is held over several answers of a row."""
    return any(_VOTE in _functions(pipeline) for pipeline in pipelines)


def leaves_several(pipelines: object) -> bool:
    """Whether of several answers of a row more than one is scored; without filters the first one is."""
    if not isinstance(pipelines, list):
        return pipelines is not None
    if f'"{CODED_FILTER}"' in json.dumps(pipelines, default=str):
        return True
    return not all({_VOTE, _FIRST} & {*_functions(pipeline)} for pipeline in pipelines)


def own_pipeline(given: object, *, is_repeated: bool) -> object:
    """The pipeline with the default pattern of `regex`, and with no filter that changes nothing here.

    `is_repeated`: rows have several answers, of which one without a vote takes the first.
    """
    if not isinstance(given, dict) or not isinstance(given.get("filter"), list):
        return given
    steps = [
        {"regex_pattern": _DEFAULT_PATTERN, **step} if _function(step) in _PATTERN_FILTERS else step
        for step in given["filter"]
    ]
    functions = _functions(given)
    if _VOTE not in functions:
        if _FIRST in functions:
            steps = [step for step in steps if _function(step) != _FIRST_K]
        return {**given, "filter": [*steps, *(_ONLY_FIRST if is_repeated else ())]}
    if functions[-2:] == [_VOTE, _FIRST]:
        steps.pop()
    return {**given, "filter": [_VOTE_OF_ALL if _function(step) == _VOTE else step for step in steps]}


def _functions(pipeline: object) -> list[object]:
    steps = pipeline.get("filter") if isinstance(pipeline, dict) else None
    return [_function(step) for step in steps] if isinstance(steps, list) else []


def _function(step: object) -> object:
    return step.get("function") if isinstance(step, dict) else None
