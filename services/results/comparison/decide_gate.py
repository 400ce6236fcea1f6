"""Decides whether a run is worse than its base by more than a margin, in any task."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from proctor.values.comparison import MAX_MARGIN_POINTS
from proctor.values.run import RunState
from services.common.checked_fields import invalid_field
from services.common.errors import DomainError
from services.results.comparison.compare_runs import CompareQuery, CompareRuns
from services.results.comparison.compared_metrics import shared_tasks, task_named
from services.results.comparison.comparison import BENCHMARK, Comparison, Difference
from services.results.comparison.errors import NoCommonSamples, NothingToCompare
from services.results.comparison.gate import Gate, GateRules, gated_tasks
from services.results.runs.conditions import CONDITIONS, MISSING_TASKS, DifferingCondition
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord

_MAX_ALPHA = 0.5


@dataclass(frozen=True, slots=True)
class GateQuery:
    """A run and its base. `is_whole`: only the figure of the benchmark as a whole is gated.

    `may_differ`: names of conditions in which the two may differ.
    """

    run_id: str
    base_run_id: str
    rules: GateRules = field(default_factory=GateRules)
    tasks: tuple[str, ...] = ()
    metric_by_task: tuple[tuple[str, str], ...] = ()
    is_whole: bool = False
    may_differ: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DecideGate:
    records: RunRecordStore
    compare_runs: CompareRuns

    async def decide(self, query: GateQuery) -> Gate:
        """Raises what `CompareRuns` raises but for differing conditions and states, and InvalidParameter."""
        _check(query)
        # What would be refused there is a condition that differs here.
        compared = CompareQuery(
            (query.run_id, query.base_run_id),
            tasks=query.tasks,
            is_forced=True,
            metric_by_task=query.metric_by_task,
        )
        comparison, problem = await self._compared(compared)
        records = await asyncio.gather(*(self.records.get(run.run_id) for run in comparison.runs))
        plans = [record.plan for record in records]
        tasks = shared_tasks(plans, query.tasks)
        differences = list(_gated(comparison, [BENCHMARK] if query.is_whole else tasks))
        samples = {task: _most_samples(plans, [task]) for task in tasks}
        samples[BENCHMARK] = _most_samples(plans, tasks)
        reasons = [
            *_state_reasons(records),
            *(f"Run {run.run_id} stopped early." for run in comparison.runs if run.is_stopped),
            *_condition_reasons(comparison.conditions, query),
        ]
        if isinstance(problem, NothingToCompare) and not reasons:
            # Nothing is wrong with the runs: they were not made to be gated.
            raise problem
        without_metric = {*tasks} - {one.task for one in comparison.differences} if not problem else ()
        return Gate(
            comparison.benchmark,
            comparison.runs,
            [
                *([str(problem)] if problem else ()),
                *(f"The runs have no metric of {task} in common." for task in sorted(without_metric)),
                *reasons,
            ],
            comparison.conditions,
            comparison.warnings,
            await asyncio.to_thread(gated_tasks, differences, samples, query.rules),
            query.rules,
        )

    async def _compared(self, query: CompareQuery) -> tuple[Comparison, DomainError | None]:
        """With why there is nothing to pair, such as where a run failed before it had an answer."""
        try:
            return await self.compare_runs.compare(query), None
        except (NothingToCompare, NoCommonSamples) as problem:
            return await self.compare_runs.without_pairs(query), problem


def _check(query: GateQuery) -> None:
    """Raises InvalidParameter."""
    rules = query.rules
    if not 0 <= rules.margin_points <= MAX_MARGIN_POINTS:
        raise invalid_field("margin_points", f"must be 0 to {MAX_MARGIN_POINTS:g}")
    if not 0 < rules.alpha < _MAX_ALPHA:
        raise invalid_field("alpha", f"must be above 0 and below {_MAX_ALPHA}")
    for name in ("max_failed_share", "max_unparsed_share"):
        if not 0 <= getattr(rules, name) <= 1:
            raise invalid_field(name, "must be 0 to 1")
    if query.is_whole and query.metric_by_task:
        raise invalid_field("metrics", "of tasks cannot be chosen where the benchmark is gated as a whole")
    known = [condition.name for condition in CONDITIONS]
    for name in query.may_differ:
        if name not in known:
            raise invalid_field("may_differ", f"{name!r} is no condition: {', '.join(known)}")


def _gated(comparison: Comparison, tasks: Sequence[str]) -> Iterator[Difference]:
    """The main or named metric of each task, which stands first."""
    for task in tasks:
        yield from [one for one in comparison.differences if one.task == task][:1]


def _most_samples(plans: Sequence[RunPlan], tasks: Sequence[str]) -> int:
    return max(sum(task_named(plan, task).sample_count for task in tasks) for plan in plans)


def _state_reasons(records: Sequence[RunRecord]) -> Iterator[str]:
    for record in records:
        if record.state is not RunState.COMPLETED:
            yield f"Run {record.plan.run_id} ended as {record.state}."


def _condition_reasons(conditions: Sequence[DifferingCondition], query: GateQuery) -> Iterator[str]:
    """Conditions of the model itself may differ: a quantized model is gated against the one it is made of."""
    allowed = {condition.name for condition in CONDITIONS if condition.is_of_model} | {*query.may_differ}
    # The caller has said which tasks count.
    allowed |= {MISSING_TASKS} if query.tasks else set()
    for one in conditions:
        if one.name not in allowed:
            tasks = f" in {', '.join(one.tasks)}" if one.tasks else ""
            yield f"The runs differ in {one.name}{tasks}: {' against '.join(one.values)}."
