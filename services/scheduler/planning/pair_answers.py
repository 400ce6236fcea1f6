"""Answers of a run beside those of another one to the same samples, or beside their targets."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from proctor.values.run import RunId
from services.scheduler.judging.errors import NoTarget, NotPaired
from services.scheduler.judging.judged_answer import JudgedAnswer
from services.scheduler.judging.ports import AnswersOfRuns


@dataclass(frozen=True, slots=True)
class PairedAnswers:
    """The answers of a run, each with that of `against` to the same sample in the same rollout.

    What one of the runs has not answered is left out. Both are read in the order of samples, page by page.
    """

    answers: AnswersOfRuns
    against: RunId

    async def pages(self, run_id: RunId) -> AsyncIterator[Sequence[JudgedAnswer]]:
        """Raises `NotPaired` where the runs were asked different samples."""
        others = _Reader(self.answers.pages(self.against))
        async for page in self.answers.pages(run_id):
            found = []
            for judged in page:
                other = await others.answer_at((judged.sample, judged.rollout))
                if other is None:
                    continue
                if other.digest != judged.digest:
                    raise NotPaired(run_id=run_id, against_run_id=self.against, sample=judged.sample)
                found.append(replace(judged, other=other.answer))
            yield found


@dataclass(frozen=True, slots=True)
class AnswersBesideTargets:
    """The answers of a run, each with the target of its sample. `prompt` is the name of the judge's."""

    answers: AnswersOfRuns
    prompt: str

    async def pages(self, run_id: RunId) -> AsyncIterator[Sequence[JudgedAnswer]]:
        """Raises `NoTarget` for a sample without one."""
        async for page in self.answers.pages(run_id):
            for judged in page:
                if not judged.target.strip():
                    raise NoTarget(sample=judged.sample, prompt=self.prompt)
            yield [replace(judged, other=judged.target) for judged in page]


class _Reader:
    """Reads answers forward, to the one that is asked for next."""

    def __init__(self, pages: AsyncIterator[Sequence[JudgedAnswer]]) -> None:
        self._pages = pages
        self._page: list[JudgedAnswer] = []

    async def answer_at(self, place: tuple[int, int]) -> JudgedAnswer | None:
        """None where the run has none; places have to rise."""
        while True:
            while self._page and (self._page[-1].sample, self._page[-1].rollout) < place:
                self._page.pop()
            if self._page:
                held = self._page[-1]
                return held if (held.sample, held.rollout) == place else None
            following = await anext(self._pages, None)
            if following is None:
                return None
            self._page = [*reversed(following)]
