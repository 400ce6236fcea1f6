"""Choices of a form that filters runs: suites, metrics of theirs, and models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.api.models import full_model
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import AmbiguousModel

# Names that stand for the main metric of a suite.
MAIN_METRICS = ("accuracy", "score")
# Names that a field offers: more would weigh more than the rest of the page.
_MAX_OFFERED = 200


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
class FilterChoices:
    """The choices that a form offers, and those that were made in it."""

    suites: Sequence[str]
    metrics: Sequence[str]
    filters: Mapping[str, str]


async def filter_choices(scheduler: Scheduler, filters: Mapping[str, str]) -> FilterChoices:
    """All suites, and the metrics of the chosen one or of all. A suite that was removed stays chosen."""
    listed = (await scheduler.runs.ListSuites(scheduler_pb2.ListSuitesRequest())).suites
    chosen = [each for each in listed if filters.get("suite", each.suite) == each.suite]
    own = [name for each in chosen for task in each.tasks for name in task.metrics]
    given = {name: [filters[name]] if name in filters else [] for name in ("suite", "metric")}
    suites = dict.fromkeys([*(each.suite for each in listed), *given["suite"]])
    return FilterChoices(list(suites), list(dict.fromkeys([*MAIN_METRICS, *own, *given["metric"]])), filters)


async def ordered_models(scheduler: Scheduler) -> Sequence[str]:
    """Names that a field offers."""
    return (await scheduler.runs.ListModelNames(scheduler_pb2.ListModelNamesRequest())).models[:_MAX_OFFERED]


async def model_filter(scheduler: Scheduler, given: str, *, has_field: bool = True) -> ModelFilter:
    """Several providers may have a model of one name: the page then offers them.

    A part of a page that has no field for the model offers no names.
    """
    offered = await ordered_models(scheduler) if has_field else ()
    try:
        return ModelFilter(await full_model(scheduler, given), offered)
    except AmbiguousModel as error:
        return ModelFilter("", offered, error.message, str(error.facts["candidates"]).split(", "))
