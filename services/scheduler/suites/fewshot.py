"""Which rows are shown as solved examples before a question: the draws of lm-evaluation-harness."""

from collections.abc import Sequence
from random import Random

from services.scheduler.suites.row_source import Row
from services.scheduler.suites.suite_errors import FewshotPoolTooSmall
from services.scheduler.suites.task_definition import FewshotRule, FewshotSampler

SEED = 1234


class FewshotDraws:
    """One generator per task; a draw depends on those before it: ask once per document, in order."""

    def __init__(self, task: str, rule: FewshotRule, pool: Sequence[Row]) -> None:
        self._task = task
        self._rule = rule
        self._pool = pool
        self._random = Random(SEED)

    def draw(self, document: Row) -> list[int]:
        """Places in the pool of the examples to show before this document."""
        wanted = self._rule.num_fewshot
        if wanted == 0:
            return []
        is_first_n = self._rule.sampler is FewshotSampler.FIRST_N
        drawn = self._first_ones(document) if is_first_n else self._random_ones(document)
        if len(drawn) < wanted:
            raise FewshotPoolTooSmall(self._task, wanted, len(self._pool))
        return drawn

    def _first_ones(self, document: Row) -> list[int]:
        wanted = self._rule.num_fewshot
        if not self._rule.drops_document:
            return list(range(min(wanted, len(self._pool))))
        return self._without(document, range(len(self._pool)))[:wanted]

    def _random_ones(self, document: Row) -> list[int]:
        wanted = self._rule.num_fewshot
        everything = range(len(self._pool))
        if not self._rule.drops_document:
            return self._sample(everything, wanted)
        drawn = self._without(document, self._sample(everything, wanted + 1))[:wanted]
        if len(drawn) == wanted:
            return drawn
        # The pool holds the document more than once, and more than one copy was drawn.
        return self._sample(self._without(document, everything), wanted)

    def _sample(self, places: Sequence[int], wanted: int) -> list[int]:
        if wanted > len(places):
            raise FewshotPoolTooSmall(self._task, self._rule.num_fewshot, len(self._pool))
        return self._random.sample(places, wanted)

    def _without(self, document: Row, places: Sequence[int]) -> list[int]:
        return [place for place in places if self._pool[place] != document]
