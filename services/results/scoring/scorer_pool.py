"""Scores texts in processes of their own: none delays the event loop, and one that is stuck can be ended."""

import asyncio
from collections.abc import Sequence
from dataclasses import astuple

from services.common.child_process import ChildProcess
from services.common.errors import DependencyUnavailable
from services.common.structured_logs import get_logger
from services.results.bounded_calls import exchange, start_process
from services.results.child_process import frame
from services.results.scoring.answer import ScoringImpossible
from services.results.scoring.score_answer import AnswerToScore, Scored, ScoringRecipe
from services.results.scoring.scorer_process import ScoringLimits

MODULE = "services.results.scoring.scorer_process"
USUAL_LIMITS = ScoringLimits()
# The process ends an answer by itself, in CPU time; this is for one that cannot any more.
REPLY_PATIENCE_SECONDS = 60.0
START_SECONDS = 60.0

log = get_logger()


class ScorerPool:
    """Processes are started when they are needed, and stay."""

    def __init__(
        self,
        most_processes: int,
        limits: ScoringLimits = USUAL_LIMITS,
        patience_seconds: float = REPLY_PATIENCE_SECONDS,
    ) -> None:
        self._turns = asyncio.Semaphore(most_processes)
        self._limits = limits
        self._patience_seconds = patience_seconds
        self._idle: list[ChildProcess] = []

    async def score(self, recipe: ScoringRecipe, answers: Sequence[AnswerToScore]) -> Sequence[Scored]:
        scored: list[Scored] = []
        was_lost = False
        while len(scored) < len(answers):
            # After a loss one at a time, until it is known which answer ends the process.
            sent = answers[len(scored) : len(scored) + 1 if was_lost else None]
            found = await self._ask(recipe, sent, is_fresh=was_lost)
            if found is None and was_lost:
                found = [ScoringImpossible("it ended the process that scores")]
            was_lost = found is None
            scored += found or ()
        return scored

    async def close(self) -> None:
        """Ends the processes. One that is at work ends with the task that waits for it."""
        while self._idle:
            await self._idle.pop().end()

    async def _ask(
        self, recipe: ScoringRecipe, answers: Sequence[AnswerToScore], *, is_fresh: bool
    ) -> list[Scored] | None:
        """Scores of the first answers; None where the process was lost. A fresh one scored nothing yet."""
        async with self._turns:
            process = self._idle.pop() if self._idle and not is_fresh else await self._started()
            is_in_step = False
            try:
                async with asyncio.timeout(self._patience_seconds):
                    found: list[Scored] = await exchange(process, frame((recipe, answers)))
                is_in_step = True
            except (OSError, EOFError, TimeoutError) as error:
                log.warning("scoring process lost", error=repr(error), answers=len(answers))
                return None
            finally:
                if is_in_step:
                    self._idle.append(process)
                else:
                    await process.end()
            return found

    async def _started(self) -> ChildProcess:
        """One that replies. A machine on which none can start is no fault of an answer.

        Raises DependencyUnavailable.
        """
        process = await start_process(MODULE, *map(str, astuple(self._limits)))
        is_there = False
        try:
            async with asyncio.timeout(START_SECONDS):
                await exchange(process, frame(()))
            is_there = True
        except (OSError, EOFError, TimeoutError) as error:
            log.warning("scoring process not started", error=repr(error))
            raise DependencyUnavailable(dependency="the process that scores") from error
        finally:
            if not is_there:
                await process.end()
        return process
