"""Samples, plans and outcomes of small runs, as the domain of results has them."""

import hashlib
import uuid
from collections.abc import Sequence

import numpy as np

from proctor.values.outcome import Answer, ChoiceScore, Failure, FailureClass, Outcome, OutcomeStatus
from proctor.values.sample import Prompt
from proctor.values.scoring import MetricUse, OutputType, ScoringMethod, TaskScoring
from proctor.values.usage import Timing, TokenUsage
from services.results.outcomes.outcome import OutcomeBatch, ScoredOutcome
from services.results.outcomes.timing_summary import Percentiles, TimingSummary
from services.results.runs.run_plan import PlannedTask, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoreValue, ScoringTarget

SHARD_SAMPLES = 10
CHOICE_SCORING = TaskScoring(
    OutputType.MULTIPLE_CHOICE, (MetricUse("acc"), MetricUse("mcc")), target_delimiter=" "
)
TEXT_SCORING = TaskScoring(OutputType.GENERATE_UNTIL, (MetricUse("exact_match"),))


def new_id() -> str:
    return str(uuid.uuid4())


def content_hash(samples: Sequence[StoredSample]) -> bytes:
    """As a sender gives it: sets of equal samples become one."""
    return hashlib.sha256(repr(list(samples)).encode()).digest()


def choice_sample(position: int, salt: str = "") -> StoredSample:
    """Asks for the parity of its position; the right choice is 0 for even ones."""
    digest = hashlib.sha256(f"{salt}/{position}".encode()).digest()
    target = ScoringTarget(choices=(" even", " odd"), choice=position % 2)
    return StoredSample(position, position, digest, Prompt(f"{position} is"), target)


def plan_of(
    sizes: Sequence[int], sample_set_ids: Sequence[str] = (), *, rollouts: int = 1, run_id: str = ""
) -> RunPlan:
    """A run of tasks t0, t1, … that own consecutive numbers."""
    tasks, first = [], 0
    for index, size in enumerate(sizes):
        sample_set_id = sample_set_ids[index] if sample_set_ids else new_id()
        tasks.append(PlannedTask(f"t{index}", sample_set_id, first, size, CHOICE_SCORING))
        first += size
    return RunPlan(run_id or new_id(), tuple(tasks), rollouts, ScoringMethod.LOGLIKELIHOOD)


def logprob_answer(
    logprobs: Sequence[float],
    are_greedy: Sequence[bool] = (),
    *,
    finish_reason: str = "",
    token_count: int = 0,
) -> Answer:
    """An answer with the log-probability of each choice."""
    pairs = zip(logprobs, are_greedy or [False] * len(logprobs), strict=True)
    choices = tuple(ChoiceScore(logprob, is_greedy, token_count) for logprob, is_greedy in pairs)
    return Answer("", finish_reason, choices)


def answered(sample: int, choice: int = 0, *, rollout: int = 0, attempt: int = 1) -> Outcome:
    logprobs = (-0.5, -2.0) if choice == 0 else (-2.0, -0.5)
    answer = logprob_answer(logprobs, (choice == 0, choice == 1), finish_reason="stop", token_count=1)
    usage, timing = TokenUsage(7, 1), Timing(0.25, None, 0.125)
    return Outcome(sample, rollout, sample // SHARD_SAMPLES, attempt, answer, usage, timing)


def said(sample: int, text: str) -> Outcome:
    return Outcome(sample, 0, sample // SHARD_SAMPLES, 1, Answer(text, "stop"))


def failed(
    sample: int, failure_class: FailureClass = FailureClass.TIMEOUT, *, rollout: int = 0, attempt: int = 1
) -> Outcome:
    failure = Failure(failure_class, "It did not work.")
    return Outcome(sample, rollout, sample // SHARD_SAMPLES, attempt, failure)


def batch(run_id: str, outcomes: Sequence[Outcome], epoch: int = 1) -> OutcomeBatch:
    return OutcomeBatch(run_id, epoch, outcomes, {"engine": "fake"})


def scored(run_id: str, outcome: Outcome, epoch: int = 1, task_index: int = 0) -> ScoredOutcome:
    """As the scorer leaves it; every answer is right."""
    if isinstance(outcome.result, Failure):
        return ScoredOutcome(run_id, epoch, task_index, outcome, OutcomeStatus.FAILED, "", {})
    scores: dict[str, ScoreValue] = {"acc": 1.0, "mcc": (0, 0)}
    return ScoredOutcome(run_id, epoch, task_index, outcome, OutcomeStatus.SCORED, "even", scores)


def timing_summary(answers: Sequence[Outcome]) -> TimingSummary:
    """As vLLM's benchmark takes it, by numpy."""
    times = [one.timing for one in answers]
    rates = [
        one.usage.completion_tokens / one.timing.total_seconds
        for one in answers
        if one.usage.completion_tokens and one.timing.total_seconds
    ]
    return TimingSummary(
        _percentiles([each.queue_seconds for each in times]),
        _percentiles([each.first_token_seconds for each in times]),
        _percentiles([each.between_tokens_seconds for each in times]),
        _percentiles([each.total_seconds for each in times]),
        _percentiles(rates),
    )


def _percentiles(values: Sequence[float | None]) -> Percentiles | None:
    reported = [value for value in values if value is not None]
    if not reported:
        return None
    shares = (float(share) for share in np.percentile(reported, [50, 90, 95, 99]))
    return Percentiles(len(reported), float(np.mean(reported)), float(np.std(reported)), *shares)
