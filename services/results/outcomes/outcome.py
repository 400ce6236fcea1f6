"""Recorded outcomes: one of each (run, sample, rollout), and when it replaces an earlier one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from operator import attrgetter

from proctor.values.making.quickly_made import quickly_made
from proctor.values.outcome import Failure, FailureClass, Outcome, OutcomeStatus
from proctor.values.usage import USAGE_NAMES, Timing, TokenUsage
from services.results.runs.run_plan import PlannedTask
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoreValue, StoredValue

UNRECORDABLE = "The answer could not be recorded; the log of results says why."
# No answer comes near these, and sums, squares and quotients over any run stay finite.
MAX_TOKENS = 10**10
MIN_SECONDS, MAX_SECONDS = 1e-9, 1e9
# An engine reports some ten facts of itself. Postgres indexes at most 2,704 bytes of a row: name and value
# of four bytes a character fit.
MAX_FACTS = 50
MAX_FACT_NAME_CHARACTERS, MAX_FACT_CHARACTERS = 100, 500
# Sample, rollout and scores of an answer.
ScoredRow = tuple[int, int, Mapping[str, ScoreValue]]
# Sample and rollout: the order of every list and file.
OutcomeKey = tuple[int, int]
BEFORE_ALL: OutcomeKey = (-1, -1)


@dataclass(frozen=True, slots=True)
class OutcomeBatch:
    """Outcomes of one run and epoch, as one message brought them."""

    run_id: str
    epoch: int
    outcomes: Sequence[Outcome]
    environment: Mapping[str, str]


@quickly_made
@dataclass(frozen=True, slots=True)
class ScoredOutcome:
    """An outcome as it is recorded. A failure has no prediction and no scores; a reused one took no time.

    `recorded_at` is set where it is read; two that differ in it alone are equal.
    """

    run_id: str
    epoch: int
    task_index: int
    outcome: Outcome
    status: OutcomeStatus
    prediction: str
    scores: Mapping[str, StoredValue]
    is_reused: bool = False
    recorded_at: datetime | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[str, int, int]:
        """The key for which one outcome is recorded."""
        return self.run_id, self.outcome.sample, self.outcome.rollout

    @property
    def failure_class(self) -> FailureClass | None:
        """None when the model answered."""
        failure = self.outcome.failure
        return failure.failure_class if failure else None


def supersedes(new: ScoredOutcome, stored: ScoredOutcome) -> bool:
    """A failure is replaced by a later epoch, an answer or a later attempt. All else is a duplicate."""
    return stored.status is OutcomeStatus.FAILED and _worth(new) > _worth(stored)


def _worth(scored: ScoredOutcome) -> tuple[int, bool, bool, int]:
    """A scored answer replaces an unscored one, and an unscored one replaces a failure."""
    failure_class = scored.failure_class
    return scored.epoch, failure_class is None, failure_class is FailureClass.SCORING, scored.outcome.attempt


def replacement(new: ScoredOutcome, stored: ScoredOutcome) -> ScoredOutcome:
    """The outcome that is kept where `new` supersedes `stored`.

    An answer that could not be scored stays, with its tokens, where a retry brought none. It takes the place
    of the retry in the epoch.
    """
    retried_in_vain = new.failure_class not in (None, FailureClass.SCORING)
    if stored.failure_class is not FailureClass.SCORING or not retried_in_vain:
        return new
    dispatched = replace(stored.outcome, shard=new.outcome.shard, attempt=new.outcome.attempt)
    return replace(stored, epoch=new.epoch, outcome=dispatched)


def without_duplicates(outcomes: Sequence[ScoredOutcome]) -> list[ScoredOutcome]:
    """One outcome per key and epoch, as if they had been recorded one after the other.

    Epochs stay apart: only one of them is open, and what the others send is refused.
    """
    # One INSERT cannot update a row twice: Postgres refuses the whole statement.
    kept: dict[tuple[int, tuple[str, int, int]], ScoredOutcome] = {}
    for outcome in outcomes:
        key = outcome.epoch, outcome.key
        stored = kept.setdefault(key, outcome)
        if stored is not outcome and supersedes(outcome, stored):
            kept[key] = outcome
    return list(kept.values())


def with_failure(outcome: Outcome, failure: Failure) -> Outcome:
    """The outcome with a failure in place of an answer that cannot be used."""
    return replace(outcome, result=failure)


def one_by_one(batch: OutcomeBatch) -> list[OutcomeBatch]:
    """Puts each outcome of a batch into a batch of its own."""
    return [replace(batch, outcomes=[outcome]) for outcome in batch.outcomes]


def as_unrecordable(batch: OutcomeBatch) -> OutcomeBatch:
    """The batch as failures, without anything that may have made it unrecordable."""
    failure = Failure(FailureClass.PROVIDER_ERROR, UNRECORDABLE)
    outcomes = [
        Outcome(failed.sample, failed.rollout, failed.shard, failed.attempt, failure)
        for failed in batch.outcomes
    ]
    return replace(batch, outcomes=outcomes, environment={})


tokens_of: Callable[[TokenUsage], tuple[int, ...]] = attrgetter(*USAGE_NAMES)
# Made once: `astuple` would take longer than the rest of an outcome's conversion.
times_of: Callable[[Timing], tuple[float | None, ...]] = attrgetter(*(each.name for each in fields(Timing)))


def plausible(outcome: Outcome) -> Outcome:
    """The outcome without numbers that no answer has: token counts become 0, times None (the total: 0)."""
    tokens, times = tokens_of(outcome.usage), times_of(outcome.timing)
    # Nearly all are, which is found out in a third of the time.
    are_seconds = [not each or MIN_SECONDS <= each <= MAX_SECONDS for each in (*times, outcome.gpu_seconds)]
    if min(tokens) >= 0 and max(tokens) <= MAX_TOKENS and all(are_seconds):
        return outcome
    total, *rest = map(plausible_seconds, times)
    return replace(
        outcome,
        usage=TokenUsage(*map(plausible_tokens, tokens)),
        timing=Timing(total or 0.0, *rest),
        gpu_seconds=plausible_seconds(outcome.gpu_seconds) or 0.0,
    )


def plausible_tokens(count: int) -> int:
    return count if 0 <= count <= MAX_TOKENS else 0


def plausible_seconds(seconds: float | None) -> float | None:
    is_plausible = seconds is not None and (seconds == 0 or MIN_SECONDS <= seconds <= MAX_SECONDS)
    return seconds if is_plausible else None


def plausible_environment(reported: Mapping[str, str]) -> Mapping[str, str]:
    """As many facts as an engine has, cut to what can be stored: others would never be recorded."""
    return {
        name[:MAX_FACT_NAME_CHARACTERS]: value[:MAX_FACT_CHARACTERS]
        for name, value in sorted(reported.items())[:MAX_FACTS]
    }


@dataclass(frozen=True, slots=True)
class ListedOutcome:
    """An outcome beside its sample."""

    task: PlannedTask
    sample: StoredSample
    scored: ScoredOutcome
    is_golden: bool = False
    is_marked_wrong: bool = False
