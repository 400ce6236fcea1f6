"""When an outcome takes the place of an earlier one."""

import math
from dataclasses import replace

import pytest

from proctor.values.outcome import Answer, Failure, FailureClass, Outcome
from proctor.values.usage import Timing, TokenUsage
from services.results.outcomes.outcome import (
    MAX_FACTS,
    as_unrecordable,
    plausible,
    plausible_environment,
    replacement,
    supersedes,
    with_failure,
    without_duplicates,
)
from tests.fakes.results.recorded_run import answered, batch, failed, scored

UNSCORED = with_failure(answered(0), Failure(FailureClass.SCORING, "It cannot be read.", Answer("yes")))


@pytest.mark.parametrize(
    ("stored", "new", "expected"),
    [
        (answered(0), answered(0, 1, attempt=2), False),
        (answered(0), failed(0, attempt=2), False),
        (failed(0), answered(0, attempt=2), True),
        (failed(0), failed(0, attempt=2), True),
        (failed(0), failed(0), False),
        (failed(0), answered(0), True),
        (failed(0, attempt=2), answered(0, attempt=1), True),
        (failed(0), UNSCORED, True),
        (failed(0, attempt=2), UNSCORED, True),
        (UNSCORED, failed(0, attempt=2), False),
        (UNSCORED, UNSCORED, False),
        (UNSCORED, answered(0), True),
    ],
)
def test_only_a_failure_is_replaced_by_a_later_attempt_or_by_an_answer(
    stored: Outcome, new: Outcome, *, expected: bool
) -> None:
    assert supersedes(scored("run", new), scored("run", stored)) is expected


def test_a_later_epoch_counts_more_than_any_attempt() -> None:
    old, new = scored("run", failed(0, attempt=9), epoch=1), scored("run", answered(0, attempt=1), epoch=2)
    assert supersedes(new, old)
    assert not supersedes(old, new)


@pytest.mark.parametrize(
    ("stored", "new", "keeps"),
    [(UNSCORED, failed(0), True), (UNSCORED, answered(0), False), (failed(0), failed(0, attempt=2), False)],
)
def test_only_an_answer_that_could_not_be_scored_outlives_a_retry(
    stored: Outcome, new: Outcome, *, keeps: bool
) -> None:
    retried = scored("run", new, epoch=2)
    expected = scored("run", replace(stored, attempt=new.attempt), epoch=2) if keeps else retried
    assert replacement(retried, scored("run", stored, epoch=1)) == expected


def test_a_batch_keeps_what_recording_one_by_one_would_keep() -> None:
    outcomes = [
        failed(0),
        answered(1),
        answered(0, attempt=2),
        answered(1, 1, attempt=2),
        failed(0, attempt=3),
    ]
    kept = without_duplicates([scored("run", outcome) for outcome in outcomes])
    assert [one.outcome for one in kept] == [answered(0, attempt=2), answered(1)]


def test_a_late_answer_of_an_earlier_epoch_does_not_push_out_that_of_the_present_one() -> None:
    late, present = scored("run", answered(0), epoch=1), scored("run", failed(0), epoch=2)
    assert without_duplicates([late, present]) == [late, present]


def test_what_cannot_be_recorded_becomes_failures_of_the_same_samples() -> None:
    given = batch("run", [answered(3), failed(4)])
    outcomes = as_unrecordable(given).outcomes
    assert [scored("run", one).failure_class for one in outcomes] == [FailureClass.PROVIDER_ERROR] * 2
    assert [one.sample for one in outcomes] == [3, 4]


def test_nothing_that_may_be_at_fault_is_kept_of_what_cannot_be_recorded() -> None:
    given = as_unrecordable(batch("run", [answered(3)]))
    [outcome] = given.outcomes
    assert (outcome.usage, outcome.timing, given.environment) == (TokenUsage(), Timing(), {})


def test_an_engine_says_no_more_of_itself_than_can_be_stored() -> None:
    long = {"x" * 5_000: "\U0001f600" * 5_000} | {f"k{number}": "v" for number in range(900)}
    kept = plausible_environment(long)
    assert len(kept) == MAX_FACTS
    # The most that an index of Postgres takes.
    assert all(len(f"{name}{value}".encode()) <= 2_600 for name, value in kept.items())
    assert plausible_environment({"engine": "vllm"}) == {"engine": "vllm"}


def test_numbers_that_no_answer_has_are_left_out_and_the_others_stay() -> None:
    usage, timing = TokenUsage(7, -1, 10**11, 3), Timing(math.nan, 0.0, -1.0, 1e-12)
    kept = plausible(replace(answered(0), usage=usage, timing=timing, gpu_seconds=math.inf))
    assert (kept.usage, kept.timing, kept.gpu_seconds) == (TokenUsage(7, 0, 0, 3), Timing(0.0, 0.0), 0.0)
    assert kept.result == answered(0).result


@pytest.mark.parametrize("timing", [Timing(), Timing(1e9, 0.0, 1e-9, None)])
def test_an_outcome_with_plausible_numbers_is_not_copied(timing: Timing) -> None:
    outcome = replace(answered(0), usage=TokenUsage(10**10), timing=timing, gpu_seconds=2.0)
    assert plausible(outcome) is outcome
