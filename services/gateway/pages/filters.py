"""Lists with filters, and the choices of a form that filters runs: suites, and metrics of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.api.models import full_model
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import AmbiguousModel

Row = TypeVar("Row")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(Generic[Row]):
    """A page of the list at `path`; `filters` are those of its address, without empty ones.

    `live_runs` may still change it; on the first page also new ones.
    """

    path: str
    rows: Sequence[Row]
    total: int
    following: str
    filters: Mapping[str, str]
    now: datetime
    live_runs: Sequence[str]
    suites: Sequence[str] = ()
    model: ModelFilter = ANY_MODEL
    # That of the data set of the filters.
    dataset_name: str = ""

    def link(self, **changes: str) -> str:
        """The address of the list with other filters, from its first page."""
        kept = {name: value for name, value in {**self.filters, "after": "", **changes}.items() if value}
        return f"{self.path}?{urlencode(kept)}" if kept else self.path

    def get(self, name: str) -> str:
        return self.filters.get(name, "")

    @property
    def address(self) -> str:
        """The address of this page of the list."""
        return self.link(after=self.get("after"))

    @property
    def socket(self) -> str:
        """The address of the socket that pushes this page, up to its last parameter."""
        return f"{self.path}/socket?{urlencode(self.filters)}{'&' if self.filters else ''}"

    @property
    def is_live(self) -> bool:
        """A name of several models lists nothing, now and later."""
        return not self.model.fault and bool(self.live_runs or not self.get("after"))

    @property
    def is_filtered(self) -> bool:
        return any(name != "after" for name in self.filters)


def given_filters(filters: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in filters.items() if value}


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
