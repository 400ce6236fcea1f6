"""Targets that were stored or read last: answers are scored without reading them again."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.results.scoring.score import ScoringTarget

# Of all sets together. What does not fit is read from Postgres.
MAX_BYTES = 16 * 1024 * 1024
# What the objects of a target take besides its texts, and each of its texts besides its characters.
_OBJECT_BYTES = 250
_TEXT_BYTES = 60


@dataclass(slots=True)
class _Set:
    targets: dict[int, ScoringTarget] = field(default_factory=dict)
    size_bytes: int = 0


class KeptTargets:
    """Targets by sample set and position. They cannot go stale: samples of a set never change.

    The sets that were used longest ago give way to others. Of a set larger than `max_bytes` a part is kept.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._sets: OrderedDict[str, _Set] = OrderedDict()
        self._size_bytes = 0

    def keep(self, sample_set_id: str, targets: Sequence[tuple[int, ScoringTarget]]) -> None:
        if not targets:
            return
        kept = self._sets.setdefault(sample_set_id, _Set())
        self._sets.move_to_end(sample_set_id)
        for position, target in targets:
            size_bytes = _bytes_of(target)
            if not self._make_room(size_bytes):
                return
            if position not in kept.targets:
                kept.size_bytes += size_bytes
                self._size_bytes += size_bytes
            kept.targets[position] = target

    def find(self, sample_set_id: str, positions: Sequence[int]) -> dict[int, ScoringTarget]:
        """Those that are kept, by position."""
        kept = self._sets.get(sample_set_id)
        if kept is None:
            return {}
        self._sets.move_to_end(sample_set_id)
        targets = kept.targets
        return {at: target for at in positions if (target := targets.get(at)) is not None}

    def _make_room(self, size_bytes: int) -> bool:
        """Drops other sets than the last, which is the one that grows."""
        while self._size_bytes + size_bytes > self._max_bytes:
            if len(self._sets) == 1:
                return False
            _, dropped = self._sets.popitem(last=False)
            self._size_bytes -= dropped.size_bytes
        return True


def _bytes_of(target: ScoringTarget) -> int:
    size = _OBJECT_BYTES
    for texts in (target.choices, target.texts, target.wrong_texts, target.choice_texts):
        if texts:
            size += _TEXT_BYTES * len(texts) + sum(map(len, texts))
    return size
