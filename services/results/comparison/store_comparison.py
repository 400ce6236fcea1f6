"""Compares two closed runs of a suite and stores the differences, for leaderboards and trends."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.errors import DependencyUnavailable
from services.common.structured_logs import get_logger
from services.results.comparison.comparability import check_comparable
from services.results.comparison.compare_runs import ComparePair
from services.results.comparison.comparison import SUITE, Difference
from services.results.comparison.errors import NoCommonSamples
from services.results.comparison.metric_choice import MetricChoice, all_metrics, shared_tasks
from services.results.comparison.ports import ComparisonStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord
from services.results.statistics.paired.estimate import undefined
from services.results.statistics.paired.mean_difference import NO_PAIRS

log = get_logger()


@dataclass(frozen=True, slots=True)
class StoreComparison:
    records: RunRecordStore
    comparisons: ComparisonStore
    compare_pair: ComparePair

    async def store(self, first_run_id: str, second_run_id: str) -> None:
        """A comparison that cannot be made is logged. Raises DependencyUnavailable."""
        # In one order: a leaderboard and the loop that compare the same pair store the same row.
        run_ids = sorted((first_run_id, second_run_id))
        first, second = [await self.records.find(run_id) for run_id in run_ids]
        if first is None or second is None:
            return
        try:
            differences = await self._differences(first, second)
        except DependencyUnavailable:
            raise
        except Exception as error:  # noqa: BLE001  # the edge of loops and leaderboards that one pair must not hold up
            log.error("runs not compared", run_ids=run_ids, error=repr(error))
        else:
            await self.comparisons.store(first, second, differences)

    async def _differences(self, first: RunRecord, second: RunRecord) -> Sequence[Difference]:
        """Undefined ones without a common sample: they need not be looked for again."""
        plans = [first.plan, second.plan]
        check_comparable([first, second], shared_tasks(plans, ()), is_forced=False)
        choice = all_metrics(plans, are_alike=True)
        try:
            return _stored(choice, await self.compare_pair.compare((first, second), choice))
        except NoCommonSamples:
            return [
                Difference(0, 1, SUITE, suite.metric, undefined(0, NO_PAIRS)) for suite in choice.of_suite
            ]


def _stored(choice: MetricChoice, differences: Sequence[Difference]) -> list[Difference]:
    """Every metric of the suite, and the main metric of each task."""
    mains = {(task, metrics[0].key) for task, metrics in choice.by_task.items() if metrics}
    return [one for one in differences if one.task == SUITE or (one.task, one.metric) in mains]
