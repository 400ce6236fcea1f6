"""Computes the baselines of suites: once per sample set and way to score it, after a run on it was closed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.values.scoring import OutputType
from services.results.leaderboard.baseline import (
    BaselineColumns,
    MajorityCount,
    TaskBaselines,
    undefined_baselines,
)
from services.results.leaderboard.closed_run import SuiteBaselines, SuiteFigures, suite_figures
from services.results.leaderboard.ports import BaselineStore
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.answer import ScoringImpossible, Target
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.summaries.group_figures import group_summary
from services.results.summaries.summarize_run import find_label_count

RUNS_AT_A_TIME = 100
SAMPLES_AT_A_TIME = 1000

Numbered = list[tuple[int, Target]]


@dataclass(frozen=True, slots=True)
class AddBaselines:
    records: RunRecordStore
    sample_sets: SampleSetStore
    baselines: BaselineStore

    async def add(self) -> None:
        """Adds those of the newest runs that have none. What is cut short is done again; rows stay unique."""
        for run_id in await self.baselines.runs_without(RUNS_AT_A_TIME):
            record = await self.records.find(run_id)
            if record is not None:
                await self.baselines.keep_for_run(run_id, await self._of_suite(record.plan))

    async def _of_suite(self, plan: RunPlan) -> SuiteBaselines:
        """Without what is undefined: a baseline that some task does not have is none of the suite."""
        if not plan.groups or all(scoring.is_unscored for scoring in plan.scorings):
            return {}
        by_task = {task.task: await self._of_task(plan, task) for task in plan.tasks}
        found: dict[str, SuiteFigures] = {}
        for name in next(iter(by_task.values()), {}):
            figures = {task: baselines[name] for task, baselines in by_task.items()}
            of_suite = suite_figures(group_summary(plan.groups[-1], figures), figures)
            found[name] = {metric: one for metric, one in of_suite.items() if one.figure.mean is not None}
        return found

    async def _of_task(self, plan: RunPlan, task: PlannedTask) -> TaskBaselines:
        kept = await self.baselines.find(task, plan.scoring_method)
        if kept is None:
            kept = await self._computed(plan, task)
            await self.baselines.keep(task, plan.scoring_method, kept)
        return kept

    async def _computed(self, plan: RunPlan, task: PlannedTask) -> TaskBaselines:
        """Twice through the targets, a chunk at a time: the most frequent answer is known after the first."""
        scoring, majority = compile_scoring(task.scoring, plan.scoring_method), MajorityCount()
        async for numbered in self._targets(task):
            majority.add(target for _, target in numbered)
        if scoring.output_type is OutputType.GENERATE_UNTIL and majority.is_of_all_different_texts:
            return undefined_baselines(scoring, task.sample_count)
        label_count = await find_label_count(self.sample_sets, task, scoring)
        columns = BaselineColumns(scoring, majority, label_count)
        try:
            async for numbered in self._targets(task):
                await asyncio.to_thread(columns.add, numbered)
        except ScoringImpossible:
            return undefined_baselines(scoring, task.sample_count)
        clusters = await self.sample_sets.clusters(task.sample_set_id)
        return await asyncio.to_thread(columns.figures, task, clusters)

    async def _targets(self, task: PlannedTask) -> AsyncIterator[Numbered]:
        for start in range(0, task.sample_count, SAMPLES_AT_A_TIME):
            positions = range(start, min(start + SAMPLES_AT_A_TIME, task.sample_count))
            found = await self.sample_sets.targets(task.sample_set_id, positions)
            yield [(task.first_sample + position, found[position]) for position in positions]
