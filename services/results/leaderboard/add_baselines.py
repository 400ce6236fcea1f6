"""Computes baselines: once per sample set and way to score it, after a run on it was closed."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from proctor.values.scoring import OutputType, benchmark_group
from services.common.errors import TookTooLong
from services.common.structured_logs import get_logger
from services.results.comparison.ports import Calls
from services.results.leaderboard.baseline import (
    BaselineColumns,
    MajorityCount,
    TaskBaselines,
    undefined_baselines,
)
from services.results.leaderboard.closed_run import BenchmarkBaselines, BenchmarkFigures, benchmark_figures
from services.results.leaderboard.ports import BaselineStore
from services.results.leaderboard.process_leases import MAX_STARTS, ProcessLeases
from services.results.leases.lease import Lease, WorkKind
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import PlannedTask, RunPlan, RunRecord
from services.results.samples.ports import SampleSetStore
from services.results.scoring.compiled_scoring import compile_scoring
from services.results.scoring.ports import AnswerScorer, UncompiledScoring
from services.results.scoring.score import ScoringImpossible, ScoringTarget
from services.results.scoring.score_answer import score_answers
from services.results.summaries.group_figures import group_summary
from services.results.summaries.ports import SummaryStore
from services.results.summaries.summarize_run import find_label_count

# The first start has little time, so that a large run does not hold up others; the second has more.
RUN_SECONDS = 60.0
SLOW_RUN_SECONDS = 600.0
# Bounds what is held of a large set, whose targets may be long.
SAMPLES_AT_A_TIME = 1000

log = get_logger()

Numbered = list[tuple[int, ScoringTarget]]


@dataclass(frozen=True, slots=True)
class AddBaselines:
    records: RunRecordStore
    sample_sets: SampleSetStore
    summaries: SummaryStore
    baselines: BaselineStore
    leased_runs: ProcessLeases
    calls: Calls
    scorer: AnswerScorer

    async def add(self) -> None:
        """Adds the baselines of runs without any. An interrupted addition is repeated; rows stay unique.

        A run that takes long is put off until the others have theirs, and given more time then. One that
        cannot have any shows the reason among the problems of its summary.
        """
        await self.leased_runs.process(WorkKind.BASELINES, self._add)

    async def _add(self, lease: Lease) -> bool:
        record = await self.records.find(lease.work.run_id)
        if record is None or record.epoch != lease.work.epoch:
            return True
        if lease.starts > MAX_STARTS:
            await self._give_up(record, f"computing them was cut short {MAX_STARTS} times")
            return True
        seconds = RUN_SECONDS if lease.starts == 1 else SLOW_RUN_SECONDS
        try:
            async with asyncio.timeout(seconds):
                found = await self._of_benchmark(record.plan)
        except (TimeoutError, TookTooLong):
            log.warning("baselines took too long", run_id=lease.work.run_id, seconds=seconds)
            if lease.starts == 1:
                return False
            await self._give_up(record, f"they take longer than {seconds:g} s")
        else:
            await self.baselines.keep_for_run(lease.work.run_id, found)
        return True

    async def _give_up(self, record: RunRecord, reason: str) -> None:
        run_id = record.plan.run_id
        log.error("no baselines", run_id=run_id, reason=reason)
        problem = f"Baselines cannot be computed: {reason}; the log of results has the details."
        await self.summaries.add_problem(run_id, record.epoch, problem)
        await self.baselines.keep_for_run(run_id, {})

    async def _of_benchmark(self, plan: RunPlan) -> BenchmarkBaselines:
        """Baselines that are defined for every task of the benchmark."""
        benchmark = benchmark_group(plan.groups)
        if benchmark is None or all(scoring.is_unscored for scoring in plan.scorings):
            return {}
        by_task = {task.task: await self._of_task(plan, task) for task in plan.tasks}
        found: dict[str, BenchmarkFigures] = {}
        for name in next(iter(by_task.values()), {}):
            figures = {task: baselines[name] for task, baselines in by_task.items()}
            of_benchmark = benchmark_figures(group_summary(benchmark, figures, plan.less_is_better), figures)
            found[name] = {metric: one for metric, one in of_benchmark.items() if one.figure.mean is not None}
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
        is_text = scoring.output_type is OutputType.GENERATE_UNTIL
        is_different = is_text and majority.is_of_all_different_texts
        # What another tool made of an answer cannot be made of a baseline's here.
        has_none = task.scoring.is_logged or scoring.code_digest or scoring.counted_metrics
        # A baseline chooses, and a given text is no choice.
        if has_none or is_different or scoring.output_type.is_of_given_text:
            return undefined_baselines(scoring, task.sample_count)
        label_count = await find_label_count(self.sample_sets, task, scoring)
        uncompiled = UncompiledScoring(
            task.scoring, plan.scoring_method, f"baselines of {task.sample_set_id}"
        )
        columns = BaselineColumns(scoring, majority, label_count)
        try:
            async for numbered in self._targets(task):
                answers = columns.answers(numbered)
                to_score = [answer.to_score for answer in answers]
                scores = await score_answers(self.scorer, scoring, uncompiled, to_score)
                await asyncio.to_thread(columns.add, answers, scores)
        except ScoringImpossible:
            return undefined_baselines(scoring, task.sample_count)
        clusters = await self.sample_sets.clusters(task.sample_set_id)
        return await self.calls.call(SLOW_RUN_SECONDS, columns.figures, task, clusters)

    async def _targets(self, task: PlannedTask) -> AsyncIterator[Numbered]:
        for start in range(0, task.sample_count, SAMPLES_AT_A_TIME):
            positions = range(start, min(start + SAMPLES_AT_A_TIME, task.sample_count))
            found = await self.sample_sets.targets(task.sample_set_id, positions)
            yield [(task.first_sample + position, found[position]) for position in positions]
