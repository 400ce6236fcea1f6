"""Requests that a gateway counts for itself while the scheduler is away."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from proctor.values.run import DEFAULT_READS_PER_MINUTE, DEFAULT_REQUESTS_PER_MINUTE
from services.common.errors import TooManyRequests
from services.gateway.auth import request_counts
from services.gateway.auth.request_counts import (
    Counted,
    RequestCounts,
)


@dataclass
class HeldClock:
    seconds: float = 1000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, tz=UTC)

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def counts(clock: HeldClock) -> RequestCounts:
    return RequestCounts(clock)


def counted(limit: int, remaining: int, seconds: float = 30.0) -> Counted:
    return Counted(limit, remaining, seconds)


def passed(counts: RequestCounts, user: str = "ann", *, is_read: bool = False, tries: int = 10_000) -> int:
    """How many of so many requests pass."""
    for number in range(tries):
        try:
            counts.count(user, is_read=is_read)
        except TooManyRequests:
            return number
    return tries


def test_defaults_hold_before_the_scheduler_has_answered(counts: RequestCounts) -> None:
    for user in ("ann", "bob"):
        assert passed(counts, user) == DEFAULT_REQUESTS_PER_MINUTE
        assert passed(counts, user, is_read=True) == DEFAULT_READS_PER_MINUTE


def test_counting_goes_on_from_what_the_scheduler_counted(counts: RequestCounts) -> None:
    counts.note("ann", counted(limit=10, remaining=4), is_read=False)
    assert passed(counts) == 4
    assert passed(counts, "bob") == 10
    assert passed(counts, is_read=True) == DEFAULT_READS_PER_MINUTE


def test_refusal_names_the_limit_and_the_rest_of_the_minute(counts: RequestCounts, clock: HeldClock) -> None:
    counts.note("ann", counted(limit=10, remaining=0, seconds=30), is_read=False)
    clock.seconds += 10.5
    with pytest.raises(TooManyRequests) as refusal:
        counts.count("ann", is_read=False)
    assert refusal.value.facts == {"user": "ann", "limit": 10, "retry_after_seconds": 20}


def test_minute_is_that_of_the_scheduler_and_then_the_next(counts: RequestCounts, clock: HeldClock) -> None:
    counts.note("ann", counted(limit=10, remaining=0, seconds=30), is_read=False)
    for seconds in (30.0, 60.0, 150.0):
        clock.seconds += seconds
        assert passed(counts) == 10
    clock.seconds += 29.0
    assert passed(counts) == 0


def test_user_whom_the_scheduler_refused_has_nothing_left(counts: RequestCounts) -> None:
    counts.note("ann", counted(limit=10, remaining=3), is_read=False)
    counts.note_refusal("ann", is_read=False)
    assert passed(counts) == 0


def test_what_the_scheduler_does_not_know_of_is_added_once_it_is_back(
    counts: RequestCounts, clock: HeldClock
) -> None:
    counts.note("ann", counted(limit=10, remaining=8), is_read=False)
    assert passed(counts, tries=5) == 5
    for remaining in (7, 6, 5):
        counts.note("ann", counted(limit=10, remaining=remaining), is_read=False)
    with pytest.raises(TooManyRequests):
        counts.note("ann", counted(limit=10, remaining=4), is_read=False)
    clock.seconds += 31.0
    counts.note("ann", counted(limit=10, remaining=0), is_read=False)


def test_no_limit_is_none_here_either(counts: RequestCounts) -> None:
    counts.note("ann", counted(limit=0, remaining=2**31 - 1), is_read=True)
    assert passed(counts, is_read=True) == 10_000


def test_names_beyond_those_that_are_kept_share_one_allowance(
    counts: RequestCounts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_counts, "_MAX_COUNTS", 3)
    assert [passed(counts, name, tries=1) for name in ("a", "b", "c")] == [1, 1, 1]
    assert passed(counts, "d", tries=60) == 60
    assert passed(counts, "e") == DEFAULT_REQUESTS_PER_MINUTE - 60
    assert passed(counts, "a") == DEFAULT_REQUESTS_PER_MINUTE - 1
