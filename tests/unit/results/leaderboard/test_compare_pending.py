"""Pairs that a leaderboard misses: compared once, behind its readers, and again where they took too long."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from services.common.errors import DependencyUnavailable
from services.results.comparison.compare_runs import StoreComparison
from services.results.comparison.ports import ComparisonStore
from services.results.leaderboard import compare_pending
from services.results.leaderboard.compare_peers import PAIR_SECONDS, SLOW_PAIR_SECONDS
from services.results.leaderboard.compare_pending import TRY_AGAIN_SECONDS, ComparePending

FIRST, SECOND, THIRD = ("a", "b"), ("a", "c"), ("b", "c")


@dataclass
class Comparisons:
    """Compares in no time, but for pairs that are slow; `asked` are the pairs and their seconds."""

    slow: dict[tuple[str, str], float] = field(default_factory=dict)
    known: list[tuple[str, str]] = field(default_factory=list)
    asked: list[tuple[tuple[str, str], float]] = field(default_factory=list)
    given_up: list[tuple[str, str]] = field(default_factory=list)
    now: float = 0.0
    is_away: bool = False
    pending: ComparePending = field(init=False)

    def __post_init__(self) -> None:
        self.pending = ComparePending(cast("ComparisonStore", self), cast("StoreComparison", self), self)  # type: ignore[arg-type]  # a clock without a date

    def monotonic(self) -> float:
        return self.now

    async def compared_with(self, run_id: str, others: Sequence[str]) -> Collection[str]:
        return [other for other in others if (run_id, other) in self.known]

    async def store(self, first_run_id: str, second_run_id: str, seconds: float) -> bool:
        if self.is_away:
            raise DependencyUnavailable(dependency="postgres")
        pair = (first_run_id, second_run_id)
        self.asked.append((pair, seconds))
        return self.slow.get(pair, 0.0) < seconds

    async def give_up(self, first_run_id: str, second_run_id: str) -> None:
        self.given_up.append((first_run_id, second_run_id))


async def test_pairs_are_compared_once_in_the_order_in_which_they_were_named() -> None:
    made = Comparisons()
    assert made.pending.add([SECOND, FIRST]) == 2
    assert made.pending.add([FIRST, THIRD]) == 2
    assert made.asked == []
    await made.pending.compare()
    assert made.asked == [(pair, PAIR_SECONDS) for pair in (SECOND, FIRST, THIRD)]


async def test_a_pair_that_is_stored_meanwhile_is_not_compared() -> None:
    made = Comparisons(known=[FIRST])
    made.pending.add([FIRST, SECOND])
    await made.pending.compare()
    assert made.asked == [(SECOND, PAIR_SECONDS)]


async def test_a_slow_pair_comes_after_the_others_and_is_given_up_at_last() -> None:
    made = Comparisons(slow={FIRST: 20.0, SECOND: 1000.0})
    made.pending.add([FIRST, SECOND, THIRD])
    await made.pending.compare()
    quick = [(pair, PAIR_SECONDS) for pair in (FIRST, SECOND, THIRD)]
    assert made.asked == [*quick, (FIRST, SLOW_PAIR_SECONDS), (SECOND, SLOW_PAIR_SECONDS)]
    assert made.given_up == [SECOND]


async def test_a_pair_that_cannot_be_compared_is_tried_again_after_a_while() -> None:
    made = Comparisons()
    made.pending.add([FIRST])
    await made.pending.compare()
    # No comparison was stored, so each reading names it.
    assert made.pending.add([FIRST]) == 0
    made.now = TRY_AGAIN_SECONDS
    assert made.pending.add([FIRST]) == 1


async def test_while_the_store_is_away_a_pair_waits_until_it_is_named_again() -> None:
    made = Comparisons(is_away=True)
    made.pending.add([FIRST])
    with pytest.raises(DependencyUnavailable):
        await made.pending.compare()
    made.is_away = False
    assert made.pending.add([FIRST]) == 1
    await made.pending.compare()
    assert made.asked == [(FIRST, PAIR_SECONDS)]


async def test_no_more_pairs_wait_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare_pending, "MAX_PENDING", 2)
    made = Comparisons()
    assert made.pending.add([FIRST, SECOND, THIRD]) == 2
    await made.pending.compare()
    assert made.pending.add([THIRD]) == 1
