"""Compares the pairs that a leaderboard was read without, after it was read.

They wait in this process only: the next reading names those that are still missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.common.clock import Clock
from services.results.comparison.compare_runs import StoreComparison
from services.results.comparison.ports import ComparisonStore
from services.results.leaderboard.compare_peers import PAIR_SECONDS, SLOW_PAIR_SECONDS

# All pairs of a whole leaderboard: `MAX_LEADERBOARD_MODELS`.
MAX_PENDING = 5000
# A pair that cannot be compared is not tried at every reading.
TRY_AGAIN_SECONDS = 600.0

RunPair = tuple[str, str]


@dataclass(slots=True)
class ComparePending:
    comparisons: ComparisonStore
    store_comparison: StoreComparison
    clock: Clock
    # The seconds that each pair is given; pairs are compared in this order.
    _pending: dict[RunPair, float] = field(default_factory=dict)
    # When each pair was compared last, the oldest first.
    _compared_at: dict[RunPair, float] = field(default_factory=dict)

    def add(self, pairs: Sequence[RunPair]) -> int:
        """The number of these pairs that are compared soon: not those that were tried a short time ago, nor
        those for which there is no room."""
        self._forget()
        for pair in pairs:
            if len(self._pending) < MAX_PENDING and pair not in self._compared_at:
                self._pending.setdefault(pair, PAIR_SECONDS)
        return sum(pair in self._pending for pair in pairs)

    async def compare(self) -> None:
        """Compares all that wait. A pair that takes long is put off once, and given more time then."""
        while self._pending:
            pair, seconds = next(iter(self._pending.items()))
            try:
                is_made = await self._compare(pair, seconds)
            finally:
                # Where Postgres is away too: the next reading names the pair again.
                del self._pending[pair]
            if is_made:
                self._compared_at[pair] = self.clock.monotonic()
            else:
                self._pending[pair] = SLOW_PAIR_SECONDS

    async def _compare(self, pair: RunPair, seconds: float) -> bool:
        """False for a pair to try again with more time."""
        first, second = pair
        # Another replica may have compared it, or it was compared after its run was closed.
        if await self.comparisons.compared_with(first, [second]):
            return True
        is_made = await self.store_comparison.store(first, second, seconds)
        if not is_made and seconds == SLOW_PAIR_SECONDS:
            await self.store_comparison.give_up(first, second)
            return True
        return is_made

    def _forget(self) -> None:
        now = self.clock.monotonic()
        for pair, at in list(self._compared_at.items()):
            if now - at < TRY_AGAIN_SECONDS:
                break
            del self._compared_at[pair]
