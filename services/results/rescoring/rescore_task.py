"""Scores the stored answers of a task with other filters or metrics: no model is asked, nothing recorded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proctor.values.outcome import Answer, Failure
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.results.answers.ports import ListedOutcomes
from services.results.checked_fields import InvalidField
from services.results.outcomes.outcome import ListedOutcome, ScoredRow
from services.results.runs.errors import RunNotFinished
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import UNSPECIFIED, RunPlan
from services.results.samples.ports import SampleSetStore
from services.results.scoring.answer import Score, ScoringImpossible, Target
from services.results.scoring.compiled_scoring import CompiledScoring, InvalidScoring, compile_scoring
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import SHORT_NAMES
from services.results.summaries.run_summary import TaskSummary
from services.results.summaries.show_summary import ShowSummary
from services.results.summaries.summarize_run import find_label_count
from services.results.summaries.task_columns import TaskColumns, cluster_numbers

MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class UnscoredAnswer:
    """`problem`: why, as a clause."""

    sample: int
    rollout: int
    row_id: str
    problem: str


class RescoredAnswers:
    """What has no answer is counted as failed, and so is what the new scoring cannot take (`unscored`).

    `needs_targets`: rows of a data set may expect nothing, and are then in no figure. Metrics of suites say
    themselves what an empty list of targets means.
    """

    def __init__(
        self, scoring: CompiledScoring, label_count: int = 0, *, needs_targets: bool = False
    ) -> None:
        self._scoring = scoring
        self._needs_targets = needs_targets
        self.columns = TaskColumns(scoring, label_count)
        self.scored = 0
        self.unparsed = 0
        self.changed = 0
        self.failed = 0
        self.unscored = 0
        self.named: list[UnscoredAnswer] = []

    def add(self, outcomes: Sequence[ListedOutcome]) -> None:
        self.columns.add([row for listed in outcomes if (row := self._row(listed)) is not None])

    def _row(self, listed: ListedOutcome) -> ScoredRow | None:
        outcome = listed.scored.outcome
        if outcome.answer is None:
            self.failed += 1
            return None
        try:
            score = self._score(listed.sample.target, outcome.answer)
        except ScoringImpossible as error:
            self.failed += 1
            self.unscored += 1
            if len(self.named) < MOST_NAMED:
                answer = UnscoredAnswer(outcome.sample, outcome.rollout, listed.sample.row_id, str(error))
                self.named.append(answer)
            return None
        self.scored += 1
        self.unparsed += score.is_unparsed
        was_failed = isinstance(outcome.result, Failure)
        self.changed += was_failed or score.prediction != listed.scored.prediction
        return outcome.sample, outcome.rollout, score.scores

    def _score(self, target: Target, answer: Answer) -> Score:
        if self._needs_targets and not target.texts:
            raise ScoringImpossible("it has no target")
        return score_answer(self._scoring, target, answer)


@dataclass(frozen=True, slots=True)
class OtherScoring:
    """No `metrics`: those of the task. `filters_json` None: those of the task, empty: none."""

    metrics: Sequence[MetricUse] = ()
    filters_json: str | None = None


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
    answers: ListedOutcomes
    show_summary: ShowSummary

    async def rescore(self, run_id: str, task: str, other: OtherScoring) -> RescoredTask:
        record = await self.records.get(run_id)
        if not record.is_frozen:
            raise RunNotFinished(run_id=run_id)
        index = _task_index(record.plan, task)
        scoring = other_scoring(record.plan, index, other)
        label_count = await find_label_count(self.sample_sets, record.plan.tasks[index], scoring)
        needs_targets = record.plan.facts.is_of_dataset
        rescored = RescoredAnswers(scoring, label_count, needs_targets=needs_targets)
        async for chunk in self.answers.chunks(record.plan, index, has_docs=False):
            # In a thread: some metrics take milliseconds per answer, and the service goes on recording.
            await asyncio.to_thread(rescored.add, chunk)
        _check_some_were_scored(rescored)
        recorded = (await self.show_summary.show(run_id)).tasks[index]
        summary = await self._summary(record.plan, index, rescored, recorded)
        return RescoredTask(summary, recorded, rescored.changed, rescored.unscored, rescored.named)

    async def _summary(
        self, plan: RunPlan, index: int, rescored: RescoredAnswers, recorded: TaskSummary
    ) -> TaskSummary:
        task = plan.tasks[index]
        clusters = cluster_numbers(task, await self.sample_sets.clusters(task.sample_set_id))
        figures = await asyncio.to_thread(
            rescored.columns.figures, has_rollouts=plan.rollouts > 1, clusters=clusters
        )
        return replace(
            recorded,
            answered=rescored.scored,
            failed=rescored.failed,
            unparsed=rescored.unparsed,
            figures=figures,
        )


def other_scoring(plan: RunPlan, index: int, other: OtherScoring) -> CompiledScoring:
    """Raises InvalidField where it cannot be read, or no metric of it fits how the answers were given."""
    recipe = plan.tasks[index].scoring
    if other.metrics:
        recipe = replace(recipe, metrics=tuple(_full_name(recipe, use) for use in other.metrics))
    if other.filters_json is not None:
        recipe = replace(recipe, filters_json=other.filters_json)
    try:
        scoring = compile_scoring(recipe, plan.scoring_method)
        assert scoring.pipelines
    except InvalidScoring as error:
        raise InvalidField(field="scoring", problem=f"cannot be read: {error}") from error
    if scoring.is_unscored:
        raise InvalidField(field="metrics", problem="must be given: the run was ordered without any")
    if not scoring.metrics:
        method = plan.scoring_method or UNSPECIFIED
        raise InvalidField(
            field="metrics", problem=f"need log-probabilities, and the run was scored by {method}"
        )
    return scoring


def _full_name(recipe: TaskScoring, use: MetricUse) -> MetricUse:
    is_text = recipe.output_type is OutputType.GENERATE_UNTIL
    return replace(use, name=SHORT_NAMES.get(use.name, use.name)) if is_text else use


def _task_index(plan: RunPlan, task: str) -> int:
    index = plan.task_index_named(task)
    if index is None:
        names = ", ".join(planned.task for planned in plan.tasks)
        raise InvalidField(field="task", problem=f"must be one of the run's: {names}")
    return index


def _check_some_were_scored(rescored: RescoredAnswers) -> None:
    if rescored.named and not rescored.scored:
        first = rescored.named[0]
        name = first.row_id or f"sample {first.sample}"
        problem = f"does not fit the answers, such as that to {name}: {first.problem}"
        raise InvalidField(field="scoring", problem=problem)
