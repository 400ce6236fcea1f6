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
        return self._first_ones(document) if is_first_n else self._random_ones(document)

    def _first_ones(self, document: Row) -> list[int]:
        everything = range(len(self._pool))
        places = self._without(document, everything) if self._rule.drops_document else list(everything)
        if len(places) < self._rule.num_fewshot:
            raise self._too_small()
        return places[: self._rule.num_fewshot]

    def _random_ones(self, document: Row) -> list[int]:
        """One draw and never a second: where it holds the document twice, an example is missing."""
        if not self._rule.drops_document:
            return self._sample(self._rule.num_fewshot)
        return self._without(document, self._sample(self._rule.num_fewshot + 1))[: self._rule.num_fewshot]

    def _sample(self, wanted: int) -> list[int]:
        if wanted > len(self._pool):
            raise self._too_small()
        return self._random.sample(range(len(self._pool)), wanted)

    def _without(self, document: Row, places: Sequence[int]) -> list[int]:
        return [place for place in places if self._pool[place] != document]

    def _too_small(self) -> FewshotPoolTooSmall:
        return FewshotPoolTooSmall(self._task, self._rule.num_fewshot, len(self._pool))
