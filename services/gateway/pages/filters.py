"""Options of a form that filters runs: suites, metrics of theirs, and models."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.api.models import model_of, models_named
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import AmbiguousModel

# Names that stand for the main metric of a suite.
MAIN_METRICS = ("headline", "accuracy", "score")
# Names that a field offers: more would weigh more than the rest of the page.
_MAX_OFFERED = 200
# Pages show eight digits of an id; fewer than six may begin many.
_ID_DIGITS = re.compile(r"[0-9a-f]{6,32}")


@dataclass(frozen=True, slots=True)
class ModelFilter:
    """`name` is full; "" for no filter. `fault`: why the given name means no model, with those that have it.

    `offered` are models that runs were ordered of.
    """

    name: str
    offered: Sequence[str] = ()
    fault: str = ""
    candidates: Sequence[str] = ()


ANY_MODEL = ModelFilter("")


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The options that a form offers, and those that are selected in it."""

    suites: Sequence[str]
    metrics: Sequence[str]
    filters: Mapping[str, str]


async def filter_options(scheduler: Scheduler, filters: Mapping[str, str]) -> FilterOptions:
    """All suites, and the metrics of the chosen one or of all. A suite that was removed stays chosen."""
    listed = (await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites
    chosen = [each for each in listed if filters.get("suite", each.suite) == each.suite]
    own = [name for each in chosen for task in each.tasks for name in task.metrics]
    given = {name: [filters[name]] if name in filters else [] for name in ("suite", "metric")}
    suites = dict.fromkeys([*(each.suite for each in listed), *given["suite"]])
    return FilterOptions(list(suites), list(dict.fromkeys([*MAIN_METRICS, *own, *given["metric"]])), filters)


async def ordered_models(scheduler: Scheduler) -> Sequence[str]:
    """Names that a field offers."""
    return (await models_named(scheduler, ""))[:_MAX_OFFERED]


def models_with(text: str, names: Sequence[str]) -> Sequence[str]:
    """The model of this full name, else those that have the text in their names, in upper or lower case."""
    return [text] if text in names else [name for name in names if text.lower() in name.lower()]


async def model_filter(scheduler: Scheduler, given: str, *, has_field: bool = True) -> ModelFilter:
    """A name of several models, or a part of names, filters nothing: the page then offers them.

    A part of a page that has no field for the model offers no names.
    """
    offered = await ordered_models(scheduler) if has_field else ()
    named = await models_named(scheduler, given) if given else ()
    try:
        name = model_of(given, named)
    except AmbiguousModel as error:
        return ModelFilter("", offered, error.message, str(error.facts["candidates"]).split(", "))
    found = () if named or not given else models_with(given, await models_named(scheduler, ""))
    if found:
        return ModelFilter("", offered, f"No model is named {given}. It is a part of these names.", found)
    return ModelFilter(name, offered)


def id_digits(text: str) -> str:
    """The digits that an id begins with, such as pages show; "" for another text."""
    digits = text.strip().lower().replace("-", "")
    return digits if _ID_DIGITS.fullmatch(digits) else ""
