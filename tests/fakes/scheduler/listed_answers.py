"""The answers of runs that are judged, in memory."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from proctor.values.run import RunId
from services.scheduler.judging.judged_answer import JudgedAnswer


@dataclass
class ListedAnswers:
    by_run: dict[RunId, list[JudgedAnswer]] = field(default_factory=dict)
    page_size: int = 3

    async def pages(self, run_id: RunId) -> AsyncIterator[Sequence[JudgedAnswer]]:
        answers = self.by_run.get(run_id, [])
        for start in range(0, len(answers), self.page_size):
            yield answers[start : start + self.page_size]
        # Results may end with a page that has none.
        yield []
