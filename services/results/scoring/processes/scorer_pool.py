"""Scores texts in separate processes: they never delay the event loop, and a stuck one can be ended."""

import asyncio
from collections.abc import Sequence
from dataclasses import astuple, replace

from services.common.errors import DependencyUnavailable, ProcessLost, RequestUnanswerable
from services.common.processes.bounded_calls import exchange, start_process
from services.common.processes.child_process import ChildProcess
from services.common.processes.plain_values import UnexpectedValue, from_bytes, to_bytes
from services.common.processes.watched_process import ProcessTimeouts, ask, memory_of_machine
from services.common.structured_logs import get_logger
from services.results.scoring.ports import AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.processes.scorer_process import Reply, Request, ScoringLimits
from services.results.scoring.score import ScoringImpossible

MODULE = "services.results.scoring.processes.scorer_process"
DEFAULT_LIMITS = ScoringLimits()
# The process ends an answer by itself; this is for one that cannot any more.
DEFAULT_TIMEOUTS = ProcessTimeouts()
# After so many in a row the answers are kept and scored later: a loss is never the fault of an answer.
MAX_LOSSES = 3
# The scorers' libraries alone take half of it.
MIN_BYTES = 256 * 1024**2
# The libraries load within seconds, and on a busy machine take several times that.
START_SECONDS = 60.0

log = get_logger()


class ScorerPool:
    """Processes are started when they are needed, and stay."""

    def __init__(
        self,
        max_processes: int,
        limits: ScoringLimits = DEFAULT_LIMITS,
        timeouts: ProcessTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._slots = asyncio.Semaphore(max_processes)
        # Below what the machine has: an answer that takes too much meets its limit, not the kernel's killer.
        share = max(memory_of_machine() // (2 * max_processes), MIN_BYTES)
        self._limits = replace(limits, memory_bytes=min(limits.memory_bytes, share))
        self._timeouts = timeouts
        self._idle: list[ChildProcess] = []

    async def score(
        self, uncompiled: UncompiledScoring, answers: Sequence[AnswerToScore]
    ) -> Sequence[Scored]:
        """Scores in the order of the answers. Raises DependencyUnavailable where processes are killed."""
        scored: list[Scored] = []
        was_lost, losses = False, 0
        while len(scored) < len(answers):
            # After a loss one at a time, until it is known which answer ends the process.
            sent = answers[len(scored) : len(scored) + 1 if was_lost else None]
            try:
                scored += await self._ask(uncompiled, sent, is_fresh=was_lost)
                was_lost, losses = False, 0
            except RequestUnanswerable as error:
                log.warning("scoring process ended by an answer", error=str(error), answers=len(sent))
                if was_lost:
                    scored.append(ScoringImpossible("it ended the process that scores"))
                was_lost = not was_lost
            except ProcessLost as error:
                log.warning("scoring process lost", error=str(error), answers=len(sent))
                losses += 1
                if losses >= MAX_LOSSES:
                    raise DependencyUnavailable(dependency="the process that scores") from error
        return scored

    async def close(self) -> None:
        """Ends the processes. One that is at work ends with the task that waits for it."""
        while self._idle:
            await self._idle.pop().end()

    async def _ask(
        self, uncompiled: UncompiledScoring, answers: Sequence[AnswerToScore], *, is_fresh: bool
    ) -> Sequence[Scored]:
        """Scores of the first answers. A fresh process scored nothing yet."""
        # Around the start as well: memory is shared out by the number of slots.
        async with self._slots:
            process = self._idle.pop() if self._idle and not is_fresh else await self._started()
            is_in_step = False
            try:
                reply = await ask(process, to_bytes(Request(uncompiled, answers)), self._timeouts)
                found = _scored(reply, len(answers))
                is_in_step = True
            finally:
                # A process that was cut off in a reply would answer the next request with its rest.
                if is_in_step:
                    self._idle.append(process)
                else:
                    await process.end()
            return found

    async def _started(self) -> ChildProcess:
        """One that replies. A machine that cannot start one is not the fault of an answer.

        Raises DependencyUnavailable.
        """
        process = await start_process(MODULE, *map(str, astuple(self._limits)))
        is_there = False
        try:
            async with asyncio.timeout(START_SECONDS):
                await exchange(process, b"")
            is_there = True
        except (OSError, EOFError, TimeoutError) as error:
            log.warning("scoring process not started", error=repr(error))
            raise DependencyUnavailable(dependency="the process that scores") from error
        finally:
            if not is_there:
                await process.end()
        return process


def _scored(reply: bytes, asked: int) -> Sequence[Scored]:
    """Scores of the first answers. Raises RequestUnanswerable.

    A process that reads a hostile answer may write any bytes.
    """
    try:
        found = from_bytes(reply, Reply)
    except UnexpectedValue as error:
        raise RequestUnanswerable(f"its reply is {error}") from error
    if not 1 <= len(found) <= asked:
        raise RequestUnanswerable(f"its reply has {len(found)} scores of {asked}")
    return [ScoringImpossible(one) if isinstance(one, str) else one for one in found]
