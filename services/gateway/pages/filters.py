"""The choices of a form that filters runs: suites, and metrics of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from services.gateway.backends.calls import Scheduler

# Names that stand for the main metric of a suite.
MAIN_METRICS = ("accuracy", "score")


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
