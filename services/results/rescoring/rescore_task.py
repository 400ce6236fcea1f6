"""Scores the stored answers of a task with other filters or metrics: asks no model, records nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.metrics.catalogue import METRICS
from proctor.values.metrics.names import full_name
from proctor.values.outcome import Failure
from proctor.values.scoring import MetricUse, TaskScoring
from services.common.checked_fields import invalid_field
from services.results.answers.outcome_filter import task_index
from services.results.answers.postgres import PostgresListedOutcomes
from services.results.outcomes.outcome import ListedOutcome, ScoredRow
from services.results.outcomes.score_task import SampleToScore, ScoreTask
from services.results.runs.errors import RunNotFrozen
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import UNSPECIFIED, RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.code.score_by_code import ScoreByCode
from services.results.scoring.compiled_scoring import CompiledScoring, InvalidScoring, compile_scoring
from services.results.scoring.ports import AnswerScorer, Scored, UncompiledScoring
from services.results.scoring.score import ScoringImpossible
from services.results.summaries.corpus_figures import SampleScores
from services.results.summaries.run_summary import TaskSummary
from services.results.summaries.show_summary import ShowSummary
from services.results.summaries.summarize_by_code import CodeFigures
from services.results.summaries.summarize_run import find_label_count
from services.results.summaries.task_columns import Clusters, TaskColumns, cluster_numbers

# The first ones show what is wrong; the others are counted.
MAX_NAMED = 20
_NO_TARGET = ScoringImpossible("it has no target")


@dataclass(frozen=True, slots=True)
class UnscoredAnswer:
    """`problem`: why, as a clause."""

    sample: int
    rollout: int
    row_id: str
    problem: str


class RescoredAnswers:
    """Figures and counts of new scores. `failed` has samples without an answer, and the `unscored` ones."""

    def __init__(self, scoring: CompiledScoring, label_count: int = 0) -> None:
        self.columns = TaskColumns(scoring, label_count)
        # What a figure is made of apart.
        self.for_code: list[SampleScores] = []
        self._is_for_code = scoring.needs_stored_values
        self.scored = 0
        self.unparsed = 0
        self.changed = 0
        self.failed = 0
        self.unscored = 0
        self.named: list[UnscoredAnswer] = []

    def add(self, outcomes: Sequence[ListedOutcome], scores: Mapping[int, Scored]) -> None:
        """Outcomes with new scores by their numbers in the list."""
        rows = [self._row(listed, scores.get(number, _NO_TARGET)) for number, listed in enumerate(outcomes)]
        self.columns.add_rows([row for row in rows if row is not None])

    def _row(self, listed: ListedOutcome, score: Scored) -> ScoredRow | None:
        outcome = listed.scored.outcome
        if outcome.answer is None:
            self.failed += 1
            return None
        if isinstance(score, ScoringImpossible):
            self.failed += 1
            self.unscored += 1
            if len(self.named) < MAX_NAMED:
                answer = UnscoredAnswer(outcome.sample, outcome.rollout, listed.sample.row_id, str(score))
                self.named.append(answer)
            return None
        self.scored += 1
        self.unparsed += score.is_unparsed
        was_failed = isinstance(outcome.result, Failure)
        self.changed += was_failed or score.prediction != listed.scored.prediction
        if self._is_for_code:
            self.for_code.append((outcome.sample, score.stored))
        return outcome.sample, outcome.rollout, score.scores


@dataclass(frozen=True, slots=True)
class ScoringOverride:
    """No `metrics`: those of the task. None: as the task has it; empty `filters_json`: none."""

    metrics: Sequence[MetricUse] = ()
    filters_json: str | None = None
    keeps_reasoning: bool | None = None


@dataclass(frozen=True, slots=True)
class RescoredTask:
    """`changed` counts the answers that are taken as something else than recorded.

    Of the `unscored` ones the first are `named`.
    """

    summary: TaskSummary
    recorded: TaskSummary
    changed: int
    unscored: int = 0
    named: Sequence[UnscoredAnswer] = ()


@dataclass(frozen=True, slots=True)
class RescoreTask:
    records: RunRecordStore
    sample_sets: SampleSetStore
    answers: PostgresListedOutcomes
    show_summary: ShowSummary
    scorer: AnswerScorer
    by_code: ScoreByCode = field(default_factory=ScoreByCode)

    @property
    def _scoring(self) -> ScoreTask:
        return ScoreTask(self.records, self.sample_sets, self.scorer, self.by_code)

    async def rescore(self, run_id: str, task: str, other: ScoringOverride) -> RescoredTask:
        record = await self.records.get(run_id)
        if not record.is_frozen:
            raise RunNotFrozen(run_id=run_id)
        index = task_index(record.plan, task)
        scoring = other_scoring(record.plan, index, other)
        uncompiled = UncompiledScoring(
            _overridden(record.plan, index, other), record.plan.scoring_method, shared_by=f"{run_id} {other}"
        )
        label_count = await find_label_count(self.sample_sets, record.plan.tasks[index], scoring)
        rescored = RescoredAnswers(scoring, label_count)
        async for chunk in self.answers.chunks(record.plan, index, has_docs=False):
            needs_target = record.plan.facts.is_of_dataset and scoring.needs_target
            answers = _scorable(chunk, needs_target=needs_target)
            how, to_score = (scoring, uncompiled), list(answers.values())
            scored = await self._scoring.score(record.plan, index, how, to_score)
            # In a thread, as with all that is done for a whole chunk: the service goes on recording.
            await asyncio.to_thread(rescored.add, chunk, dict(zip(answers, scored, strict=True)))
        _check_some_were_scored(rescored)
        recorded = (await self.show_summary.show(run_id)).tasks[index]
        # A retry meanwhile replaces answers: those read were of two epochs.
        check_epoch(await self.records.get(run_id), record.epoch)
        planned = record.plan.tasks[index]
        clusters = cluster_numbers(planned, await self.sample_sets.clusters(planned.sample_set_id))
        summary = await _summary(rescored, recorded, clusters, has_rollouts=record.plan.rollouts > 1)
        if scoring.needs_stored_values:
            by_code = CodeFigures(self.records, self.by_code.runner)
            coded = await by_code.figures(run_id, scoring, rescored.for_code, clusters)
            summary = replace(summary, figures={**summary.figures, **coded.figures})
        return RescoredTask(summary, recorded, rescored.changed, rescored.unscored, rescored.named)


def _scorable(outcomes: Sequence[ListedOutcome], *, needs_target: bool) -> Mapping[int, SampleToScore]:
    """Answers by their numbers in the list.

    Rows of a data set may have no target; suites say themselves what that means, and verdicts need none.
    """
    return {
        number: (listed.scored.outcome.sample, listed.sample.target, listed.scored.outcome.answer)
        for number, listed in enumerate(outcomes)
        if listed.scored.outcome.answer and (listed.sample.target.texts or not needs_target)
    }


def _overridden(plan: RunPlan, index: int, other: ScoringOverride) -> TaskScoring:
    scoring = plan.tasks[index].scoring
    if scoring.is_logged:
        # It is our scoring, beside that of the log, also where only the figure of the log is a mean.
        ours = tuple(replace(use, aggregation="") for use in scoring.metrics)
        scoring = replace(scoring, metrics=ours, is_logged=False)
    if other.metrics:
        metrics = tuple(_full_name(scoring, use) for use in other.metrics)
        # Named metrics take the place of code that scores; code that filters stays.
        scoring = replace(scoring, metrics=metrics, process_results="")
    if other.filters_json is not None:
        scoring = replace(scoring, filters_json=other.filters_json)
    if other.keeps_reasoning is not None:
        scoring = replace(scoring, keeps_reasoning=other.keeps_reasoning)
    return scoring


def other_scoring(plan: RunPlan, index: int, other: ScoringOverride) -> CompiledScoring:
    """Raises InvalidParameter where it cannot be read, or no metric of it fits how the answers were given."""
    try:
        scoring = compile_scoring(_overridden(plan, index, other), plan.scoring_method)
        assert scoring.pipelines
    except InvalidScoring as error:
        raise invalid_field("scoring", f"cannot be read: {error}") from error
    if scoring.is_unscored:
        raise invalid_field("metrics", "must be given: the run was ordered without any")
    if not scoring.metrics:
        method = plan.scoring_method or UNSPECIFIED
        raise invalid_field("metrics", f"need log-probabilities, and the run was scored by {method}")
    return scoring


def _full_name(scoring: TaskScoring, use: MetricUse) -> MetricUse:
    known = [name for name, metric in METRICS.items() if metric.inputs_of(scoring.output_type)]
    return replace(use, name=full_name(use.name, known))


def _check_some_were_scored(rescored: RescoredAnswers) -> None:
    if rescored.named and not rescored.scored:
        first = rescored.named[0]
        name = first.row_id or f"sample {first.sample}"
        problem = f"does not fit the answers, such as that to {name}: {first.problem}"
        raise invalid_field("scoring", problem)


async def _summary(
    rescored: RescoredAnswers, recorded: TaskSummary, clusters: Clusters | None, *, has_rollouts: bool
) -> TaskSummary:
    figures = await asyncio.to_thread(rescored.columns.figures, has_rollouts=has_rollouts, clusters=clusters)
    return replace(
        recorded,
        answered=rescored.scored,
        failed=rescored.failed,
        unparsed=rescored.unparsed,
        figures=figures,
    )
