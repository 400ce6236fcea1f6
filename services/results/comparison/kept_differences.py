"""Differences that were computed a short time ago: a comparison that is read again costs nothing.

The answers of a closed epoch never change, and a retry of a run begins another epoch.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from services.results.comparison.comparison import Difference

# Of all comparisons together; some 20 MB.
MAX_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class ComparisonKey:
    """The inputs that differences follow from. `runs`: ids and epochs in the order of the comparison."""

    runs: tuple[tuple[str, int], ...]
    metrics: tuple[str, ...]
    tasks: tuple[str, ...]
    is_forced: bool


@dataclass(slots=True)
class KeptDifferences:
    """The comparisons that were read last. They live in this process: each replica computes for itself."""

    max_kept: int = MAX_KEPT
    _by_key: OrderedDict[ComparisonKey, Sequence[Difference]] = field(default_factory=OrderedDict)
    _count: int = 0

    def find(self, key: ComparisonKey) -> Sequence[Difference] | None:
        found = self._by_key.get(key)
        if found is not None:
            self._by_key.move_to_end(key)
        return found

    def keep(self, key: ComparisonKey, differences: Sequence[Difference]) -> None:
        """Keeps no sums that estimates were made from: they are as large as the runs."""
        if key in self._by_key or len(differences) > self.max_kept:
            return
        light = [replace(one, estimate=replace(one.estimate, units=None)) for one in differences]
        self._by_key[key] = light
        self._count += len(light)
        while self._count > self.max_kept:
            _, dropped = self._by_key.popitem(last=False)
            self._count -= len(dropped)
