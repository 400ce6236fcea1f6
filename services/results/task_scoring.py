"""How a task's answers are scored, as it travels with a sample set: metrics, filters, choices."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from services.results.answer_filters import FILTERS, FilterPipeline, FilterStep
from services.results.text_match import TextMatch


class OutputType(StrEnum):
    MULTIPLE_CHOICE = "multiple_choice"
    GENERATE_UNTIL = "generate_until"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric by name, and for `exact_match` what it overlooks."""

    name: str
    match: TextMatch = field(default_factory=TextMatch)


@dataclass(frozen=True, slots=True)
class TaskScoring:
    output_type: OutputType
    metrics: tuple[Metric, ...]
    filters: tuple[FilterPipeline, ...] = ()
    target_delimiter: str = " "


class InvalidScoring(ValueError):
    """A task's scoring cannot be understood: an option, a filter or a metric that does not exist."""


def metric_names(scoring: TaskScoring) -> tuple[str, ...]:
    """The keys of a score, in the order of a summary; metrics of several filters read `metric,filter`."""
    suffixes = [""] if len(scoring.filters) < 2 else [f",{pipeline.name}" for pipeline in scoring.filters]
    return tuple(f"{metric.name}{suffix}" for suffix in suffixes for metric in scoring.metrics)


def read_metric(name: str, options_json: str) -> Metric:
    if not options_json:
        return Metric(name)
    try:
        options = dict(json.loads(options_json))
        regexes = tuple(_compiling(regex) for regex in options.pop("regexes_to_ignore", ()))
        return Metric(name, TextMatch(regexes_to_ignore=regexes, **options))
    except (ValueError, TypeError, re.error) as error:
        raise InvalidScoring(f"options of metric {name!r}: {error}") from error


def read_filters(filters_json: str) -> tuple[FilterPipeline, ...]:
    """Read lm-evaluation-harness's `filter_list`: `[{"name": …, "filter": [{"function": …, …}]}]`."""
    if not filters_json:
        return ()
    try:
        listed = json.loads(filters_json)
        return tuple(FilterPipeline(one["name"], _steps(one["filter"])) for one in listed)
    except (ValueError, TypeError, KeyError, re.error) as error:
        raise InvalidScoring(f"filters: {error}") from error


def _steps(filters: Iterable[Mapping[str, object]]) -> tuple[FilterStep, ...]:
    steps = []
    for options in filters:
        step = FilterStep(**{key: value for key, value in options.items() if key != "fallback"})  # type: ignore[arg-type] # JSON of the loader's own schema
        if step.function not in FILTERS:
            raise InvalidScoring(f"no filter {step.function!r}")
        _compiling(step.regex_pattern)
        steps.append(step)
    return tuple(steps)


def _compiling(regex: str) -> str:
    """A regex that would fail at the first answer fails here."""
    re.compile(regex)
    return regex
