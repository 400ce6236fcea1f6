"""Lists with filters, and the choices of a form that filters runs: suites, and metrics of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.backends.calls import Scheduler

Row = TypeVar("Row")
# Names that stand for the main metric of a suite.
MAIN_METRICS = ("accuracy", "score")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListView(Generic[Row]):
    """A page of the list at `path`; `filters` are those of its address, without empty ones.

    `live_runs` may still change it.
    """

    path: str
    rows: Sequence[Row]
    total: int
    following: str
    filters: Mapping[str, str]
    now: datetime
    live_runs: Sequence[str]
    suites: Sequence[str] = ()

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
