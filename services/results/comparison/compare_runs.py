"""Compares runs of a benchmark pair by pair: what each difference is, and what it proves.

Those of closed runs are stored, for leaderboards and trends.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from proctor.values.scoring import benchmark_group
from services.common.checked_fields import invalid_field
from services.common.errors import DependencyUnavailable, TookTooLong
from services.common.structured_logs import get_logger
from services.results.comparison.comparability import (
    check_comparable,
    check_options,
    stopped_warnings,
    unparsed_warnings,
    warnings_of,
)
from services.results.comparison.compared_metrics import (
    ComparedMetrics,
    all_metrics,
    chosen_metrics,
    main_metrics,
    named_metrics,
    shared_tasks,
)
from services.results.comparison.comparison import (
    BENCHMARK,
    ComparedRun,
    Comparison,
    ComparisonKey,
    Difference,
    DifferenceCache,
    corrected,
)
from services.results.comparison.errors import ComparisonTooSlow, NoCommonSamples, RunOfModelNotFound
from services.results.comparison.pair_differences import pair_differences
from services.results.comparison.ports import Calls, ComparisonStore, RunsOfModels
from services.results.comparison.postgres import PostgresPairs
from services.results.runs.conditions import DifferingCondition, EvaluatedRun, differing_conditions
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore
from services.results.statistics.paired.difference_estimate import DifferenceEstimate, undefined
from services.results.statistics.paired.mean_difference import NO_PAIRS
from services.results.summaries.ports import SummaryStore
from services.results.summaries.summarize_run import find_label_count

# How long a pair may hold its process; then the call fails, with advice.
MAX_SECONDS = 300.0
TOOK_TOO_LONG = "not made: it took too long"
log = get_logger()


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """Runs, or models by their latest completed run of a benchmark. No metrics: the main one of each task.

    `metric_by_task`: pairs of a task and its metric; then the benchmark as a whole is not compared.
    """

    run_ids: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    benchmark: str = ""
    metrics: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    is_forced: bool = False
    metric_by_task: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ComparePair:
    sample_sets: SampleSetStore
    pairs: PostgresPairs
    calls: Calls

    async def compare(
        self, runs: tuple[RunRecord, RunRecord], compared: ComparedMetrics, indexes: tuple[int, int] = (0, 1)
    ) -> list[Difference]:
        """The differences of two runs, not corrected. Raises NoCommonSamples, ComparisonTooSlow."""
        first, second = (record.plan for record in runs)
        metrics = {task: [one.key for one in metrics] for task, metrics in compared.by_task.items()}
        pairs = await self.pairs.pairs(first, second, metrics)
        if not pairs:
            raise NoCommonSamples(first=first.run_id, second=second.run_id)
        label_counts = await self._label_counts(first, compared)
        try:
            return await self.calls.call(
                MAX_SECONDS, pair_differences, indexes, compared, pairs, label_counts
            )
        except TookTooLong as error:
            raise ComparisonTooSlow(first=first.run_id, second=second.run_id, seconds=MAX_SECONDS) from error

    async def _label_counts(self, plan: RunPlan, compared: ComparedMetrics) -> dict[str, int]:
        return {
            task.task: await find_label_count(self.sample_sets, task, scoring)
            for task, scoring in zip(plan.tasks, plan.scorings, strict=True)
            if task.task in compared.by_task
        }


@dataclass(frozen=True, slots=True)
class CompareRuns:
    records: RunRecordStore
    summaries: SummaryStore
    runs_of_models: RunsOfModels
    compare_pair: ComparePair
    cache: DifferenceCache

    async def compare(self, query: CompareQuery) -> Comparison:
        """Raises RecordNotFound, RunOfModelNotFound, RunNotFrozen, OtherBenchmark, OtherScoring,
        OtherOptions, NothingToCompare, NoCommonSamples, UnknownMetric; InvalidParameter for anything else
        that is wrong."""
        records = await self._records(query)
        plans = [record.plan for record in records]
        check_comparable(records, shared_tasks(plans, query.tasks), is_forced=query.is_forced)
        compared = _compared_metrics(plans, query)
        if not query.is_forced:
            check_options(plans, compared)
        key = ComparisonKey(
            runs=tuple((record.plan.run_id, record.epoch) for record in records),
            metrics=query.metrics,
            metric_by_task=query.metric_by_task,
            tasks=query.tasks,
            is_forced=query.is_forced,
        )
        found = self.cache.find(key)
        if found is None:
            found = await self._differences(records, compared)
            self.cache.keep(key, found)
        return await self._comparison(records, query, compared, found)

    async def without_pairs(self, query: CompareQuery) -> Comparison:
        """Runs and conditions alone, of runs that `compare` finds nothing to pair in. Raises as it does."""
        return await self._comparison(await self._records(query), query, ComparedMetrics({}, ()), ())

    async def _records(self, query: CompareQuery) -> list[RunRecord]:
        run_ids = await self._run_ids(query)
        return await asyncio.gather(*(self.records.get(run_id) for run_id in run_ids))

    async def _comparison(
        self,
        records: Sequence[RunRecord],
        query: CompareQuery,
        compared: ComparedMetrics,
        found: Sequence[Difference],
    ) -> Comparison:
        plans = [record.plan for record in records]
        tasks = shared_tasks(plans, query.tasks)
        runs = await asyncio.gather(*(self._compared_run(record, compared) for record in records))
        # Over all pairs at once: correcting each by itself would promise too much.
        differences, corrected_over = corrected(found)
        return Comparison(
            benchmark=plans[0].facts.benchmark,
            runs=runs,
            differences=differences,
            corrected_over=corrected_over,
            warnings=[*warnings_of(records, tasks), *stopped_warnings(runs), *unparsed_warnings(runs, plans)],
            conditions=await self._conditions(plans, tasks),
        )

    async def _conditions(self, plans: Sequence[RunPlan], tasks: Sequence[str]) -> list[DifferingCondition]:
        reported = {each.run_id: each.counts.environment for each in await self.records.counts(plans, ())}
        runs = [EvaluatedRun(plan, reported.get(plan.run_id, {})) for plan in plans]
        return differing_conditions(runs, tasks)

    async def _differences(self, records: Sequence[RunRecord], compared: ComparedMetrics) -> list[Difference]:
        found: list[Difference] = []
        for first, second in combinations(range(len(records)), 2):
            runs = records[first], records[second]
            found += await self.compare_pair.compare(runs, compared, (first, second))
        return found

    async def _run_ids(self, query: CompareQuery) -> Sequence[str]:
        if bool(query.run_ids) == bool(query.models):
            raise invalid_field("run_ids", "or models must be given, and not both")
        field, named = ("run_ids", query.run_ids) if query.run_ids else ("models", query.models)
        if not MIN_COMPARED <= len(named) <= MAX_COMPARED:
            raise invalid_field(field, f"must be {MIN_COMPARED} to {MAX_COMPARED}, not {len(named)}")
        if len(set(named)) < len(named):
            raise invalid_field(field, "must differ; one is named twice")
        return query.run_ids or await self._latest_runs(query)

    async def _latest_runs(self, query: CompareQuery) -> list[str]:
        if not query.benchmark:
            raise invalid_field("benchmark", "must be given with models")
        latest = await self.runs_of_models.latest_runs(query.benchmark, query.models)
        for model in query.models:
            if model not in latest:
                raise RunOfModelNotFound(model=model, benchmark=query.benchmark)
        return [latest[model] for model in query.models]

    async def _compared_run(self, record: RunRecord, compared: ComparedMetrics) -> ComparedRun:
        """The score is the benchmark's own figure of what is compared first."""
        plan = record.plan
        summary = await self.summaries.find(plan.run_id, record.epoch)
        benchmark = benchmark_group(summary.groups) if summary else None
        figures = benchmark.figures if benchmark else {}
        metrics = [each.metric for each in compared.of_benchmark]
        score = figures[metrics[0]].mean if metrics and metrics[0] in figures else None
        return ComparedRun(
            plan.run_id,
            plan.answering_model,
            plan.scoring_method,
            plan.facts.limit,
            score,
            summary.unparsed_rate if summary else None,
            bool(summary and summary.decision),
        )


def _compared_metrics(plans: Sequence[RunPlan], query: CompareQuery) -> ComparedMetrics:
    if query.metric_by_task:
        return named_metrics(plans, query.tasks, dict(query.metric_by_task))
    if query.metrics:
        return chosen_metrics(plans, query.tasks, query.metrics)
    return main_metrics(plans, query.tasks)


@dataclass(frozen=True, slots=True)
class StoreComparison:
    records: RunRecordStore
    comparisons: ComparisonStore
    compare_pair: ComparePair

    async def store(self, first_run_id: str, second_run_id: str, seconds: float) -> bool:
        """Whether that took no longer; a comparison that cannot be made is logged.

        Raises DependencyUnavailable.
        """
        runs = await self._runs(first_run_id, second_run_id)
        try:
            # The caller's own limit, below `MAX_SECONDS`: a leaderboard waits for it.
            async with asyncio.timeout(seconds):
                differences = await self._differences(*runs) if runs else ()
        except DependencyUnavailable:
            raise
        except (TimeoutError, ComparisonTooSlow):
            log.warning("comparison took too long", run_ids=[first_run_id, second_run_id], seconds=seconds)
            return False
        except Exception as error:  # noqa: BLE001  # the edge of loops and leaderboards that one pair must not hold up
            log.error("runs not compared", run_ids=[first_run_id, second_run_id], error=repr(error))
            return True
        if runs and differences:
            await self.comparisons.store(*runs, differences)
        return True

    async def give_up(self, first_run_id: str, second_run_id: str) -> None:
        """Stores that the comparison took too long, in the place of its figures."""
        runs = await self._runs(first_run_id, second_run_id)
        if runs:
            compared = all_metrics([run.plan for run in runs], are_alike=True)
            await self.comparisons.store(*runs, _undefined(compared, DifferenceEstimate(test=TOOK_TOO_LONG)))

    async def _runs(self, first_run_id: str, second_run_id: str) -> tuple[RunRecord, RunRecord] | None:
        """Both runs in one order.

        A leaderboard and the loop that compare the same pair store the same row.
        """
        first, second = [await self.records.find(run_id) for run_id in sorted((first_run_id, second_run_id))]
        return None if first is None or second is None else (first, second)

    async def _differences(self, first: RunRecord, second: RunRecord) -> Sequence[Difference]:
        """Undefined ones without a common sample: they need not be looked for again."""
        plans = [first.plan, second.plan]
        check_comparable([first, second], shared_tasks(plans, ()), is_forced=False)
        compared = all_metrics(plans, are_alike=True)
        try:
            return _stored(compared, await self.compare_pair.compare((first, second), compared))
        except NoCommonSamples:
            return _undefined(compared, undefined(0, NO_PAIRS))


def _undefined(compared: ComparedMetrics, estimate: DifferenceEstimate) -> list[Difference]:
    return [Difference(0, 1, BENCHMARK, each.metric, estimate) for each in compared.of_benchmark]


def _stored(compared: ComparedMetrics, differences: Sequence[Difference]) -> list[Difference]:
    """Every metric of the benchmark, and the main metric of each task."""
    mains = {(task, metrics[0].key) for task, metrics in compared.by_task.items() if metrics}
    return [one for one in differences if one.task == BENCHMARK or (one.task, one.metric) in mains]
