"""Figures of what all answers of a task score together: of their counts, and by the task's Python code."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from services.common.sandboxes.task_code.ports import CodeEnded, CodeRunner
from services.common.threads.cancellable_threads import CancellableThreads
from services.results.runs.ports import RunRecordStore
from services.results.scoring.code.figures_by_code import CodeFigure, UnitScores, figures_by_code
from services.results.scoring.code.score_by_code import AT_A_TIME, OFF
from services.results.scoring.compiled_scoring import CompiledScoring
from services.results.statistics.figure import BOOTSTRAP, Figure
from services.results.statistics.intervals import percentile_interval
from services.results.summaries.corpus_figures import SampleScores, corpus_figures
from services.results.summaries.task_columns import Clusters


@dataclass(frozen=True, slots=True)
class CodedFigures:
    """`problems`: why a figure is undefined, as sentences."""

    figures: Mapping[str, Figure] = field(default_factory=dict)
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CodeFigures:
    """`runner` None: the operator allows no code of tasks."""

    records: RunRecordStore
    runner: CodeRunner | None = None
    threads: CancellableThreads = field(default_factory=lambda: CancellableThreads(AT_A_TIME))

    async def figures(
        self, run_id: str, scoring: CompiledScoring, scores: Sequence[SampleScores], clusters: Clusters | None
    ) -> CodedFigures:
        counted = await self.threads.run(corpus_figures, scoring, scores, clusters)
        coded = await self._coded(run_id, scoring, scores, clusters)
        return replace(coded, figures={**counted, **coded.figures})

    async def _coded(
        self, run_id: str, scoring: CompiledScoring, scores: Sequence[SampleScores], clusters: Clusters | None
    ) -> CodedFigures:
        keys = [scored.key for scored in scoring.aggregated_metrics]
        counts = {key: len({sample for sample, values in scores if key in values}) for key in keys}
        if not any(counts.values()):
            return CodedFigures(dict.fromkeys(keys, Figure()))
        if self.runner is None:
            problem = OFF
        else:
            files = await self.records.code(run_id, scoring.code_digest)
            try:
                made = await self.threads.run(
                    figures_by_code, self.runner, scoring, files, _units(scores, clusters)
                )
            except CodeEnded as ended:
                problem = f"the code of the task {ended}"
            else:
                figures = {key: _figure(made.get(key, CodeFigure(None)), counts[key]) for key in keys}
                problems = {key: one.problem for key, one in made.items() if one.problem}
                told = [f"{key} cannot be computed: {problem}." for key, problem in problems.items()]
                return CodedFigures(figures, told)
        undefined = {key: Figure(n=counts[key]) for key in keys}
        return CodedFigures(undefined, [f"{', '.join(keys)} cannot be computed: {problem}."])


def _units(scores: Sequence[SampleScores], clusters: Clusters | None) -> Iterator[UnitScores]:
    samples = np.array([sample for sample, _ in scores], dtype=np.int64)
    units = clusters(samples) if clusters else samples
    return ((int(unit), values) for unit, (_, values) in zip(units, scores, strict=True))


def _figure(made: CodeFigure, count: int) -> Figure:
    """The error is that of a bootstrap, where the code allows one."""
    figure = Figure(mean=made.figure, n=count)
    if made.figure is None or not made.draws:
        return figure
    draws = np.array(made.draws, dtype=np.float64)
    stderr = float(np.std(draws, ddof=1))
    low, high = percentile_interval(draws)
    return Figure(made.figure, stderr, stderr, low, high, count, BOOTSTRAP)
