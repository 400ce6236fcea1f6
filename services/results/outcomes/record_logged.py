"""Records answers of another tool's log with the scores that it has: nothing is scored here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from proctor.values.outcome import Failure, Outcome, OutcomeStatus
from services.common.checked_fields import invalid_field
from services.results.outcomes.outcome import ScoredOutcome, without_duplicates
from services.results.outcomes.ports import OutcomeStore
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan, RunRecord
from services.results.scoring.score import ScoreValue, StoredValue


@dataclass(frozen=True, slots=True)
class LoggedOutcome:
    """`prediction`: what the tool read from the answer; `scores` by the key of a figure."""

    outcome: Outcome
    scores: Mapping[str, ScoreValue] = field(default_factory=dict)
    prediction: str = ""
    is_unparsed: bool = False


@dataclass(frozen=True, slots=True)
class RecordLogged:
    records: RunRecordStore
    outcomes: OutcomeStore

    async def record(self, run_id: str, epoch: int, logged: Sequence[LoggedOutcome]) -> int:
        """Returns how many are new. Can be repeated without harm."""
        record = await self.records.get(run_id)
        check_epoch(record, epoch)
        scored = [_scored(record, one) for one in logged]
        return await self.outcomes.record(without_duplicates(scored)) if scored else 0


def _scored(record: RunRecord, one: LoggedOutcome) -> ScoredOutcome:
    outcome = one.outcome
    index = _task_index(record.plan, outcome)
    failed = isinstance(outcome.result, Failure)
    counted = {each.key for each in record.plan.scorings[index].counted_metrics}
    # What is summed up over all answers is a list, a pair of labels is not.
    scores: dict[str, StoredValue] = {
        key: list(score) if key in counted and isinstance(score, tuple) else score
        for key, score in one.scores.items()
    }
    answered = OutcomeStatus.UNPARSED if one.is_unparsed else OutcomeStatus.SCORED
    return ScoredOutcome(
        run_id=record.plan.run_id,
        epoch=record.epoch,
        task_index=index,
        outcome=outcome,
        status=OutcomeStatus.FAILED if failed else answered,
        prediction="" if failed else one.prediction,
        scores={} if failed else scores,
    )


def _task_index(plan: RunPlan, outcome: Outcome) -> int:
    """Refuses an outcome that the run does not ask for, or that is scored here."""
    index = plan.task_index_of(outcome.sample)
    if index is None or not plan.is_asked(outcome.sample, outcome.rollout):
        raise invalid_field("outcomes", f"have the sample {outcome.sample}, which the run has not")
    if not plan.tasks[index].scoring.is_logged:
        raise invalid_field("outcomes", f"are of {plan.tasks[index].task}, which is scored here")
    return index
