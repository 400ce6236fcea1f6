"""Draws the few-shot examples of a question exactly as lm-evaluation-harness does."""

from collections.abc import Sequence
from itertools import islice
from random import Random

from services.scheduler.suites.errors import FewshotPoolTooSmall
from services.scheduler.suites.rows.row_source import Row
from services.scheduler.suites.suite import FewshotRule, FewshotSampler

SEED = FewshotRule().seed


class FewshotDraws:
    """One random generator per task. Each draw depends on earlier ones: call once per document, in order."""

    def __init__(self, task: str, rule: FewshotRule, pool: Sequence[Row]) -> None:
        self._task = task
        self._rule = rule
        self._pool = pool
        self._random = Random(rule.seed)

    def draw(self, document: Row) -> list[int]:
        """Indexes in the pool of the examples to show before this document. Raises `FewshotPoolTooSmall`."""
        wanted = self._rule.num_fewshot
        if wanted == 0:
            return []
        is_first_n = self._rule.sampler is FewshotSampler.FIRST_N
        indexes = self._first_ones(document) if is_first_n else self._random_ones(document)
        if len(indexes) < wanted:
            raise self._too_small()
        return indexes

    def _first_ones(self, document: Row) -> list[int]:
        everything = range(len(self._pool))
        if not self._rule.drops_document:
            return list(everything[: self._rule.num_fewshot])
        others = (index for index in everything if self._pool[index] != document)
        return list(islice(others, self._rule.num_fewshot))

    def _random_ones(self, document: Row) -> list[int]:
        """Draws one extra, so that the document can be dropped; draws again if it occurs twice."""
        wanted = self._rule.num_fewshot
        if not self._rule.drops_document:
            return self._sample(range(len(self._pool)), wanted)
        drawn = self._sample(range(len(self._pool)), wanted + self._spare())
        indexes = self._without(document, drawn)[:wanted]
        if len(indexes) == wanted:
            return indexes
        return self._sample(self._without(document, range(len(self._pool))), wanted)

    def _spare(self) -> int:
        """Examples in the task file are no documents, so no extra is drawn if all are wanted."""
        is_all = self._rule.num_fewshot == len(self._rule.samples)
        return 0 if is_all else 1

    def _sample(self, indexes: Sequence[int], wanted: int) -> list[int]:
        if wanted > len(indexes):
            raise self._too_small()
        return self._random.sample(indexes, wanted)

    def _without(self, document: Row, indexes: Sequence[int]) -> list[int]:
        return [index for index in indexes if self._pool[index] != document]

    def _too_small(self) -> FewshotPoolTooSmall:
        return FewshotPoolTooSmall(
            task=self._task, num_fewshot=self._rule.num_fewshot, pool_size=len(self._pool)
        )
