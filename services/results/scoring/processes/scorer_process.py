"""A process that scores answers for results, with bounds on the time and the memory of each.

It ends when its input does.
"""

import math
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

from services.common.processes.plain_values import from_bytes, to_bytes
from services.common.processes.request_loop import answer_requests
from services.results.scoring.compiled_scoring import CompiledScoring, compile_scoring
from services.results.scoring.ports import AnswerToScore, Scored, UncompiledScoring
from services.results.scoring.score import Score, ScoringImpossible
from services.results.scoring.score_answer import score_answer
from services.results.scoring.text_metrics import load_libraries
from services.results.scoring.timed_regex import SLOW_SECONDS, SlowTime

# Bounds the memory of compiled patterns; more tasks are rarely scored at a time.
MAX_CACHED_SCORINGS = 256
# A reply comes about this often, so that answers of other runs are scored in between.
REPLY_SECONDS = 1.0
# CPU time between two rings of the timer. An answer passes its bound by one interval at most, and by one
# more for each ring that Python ignores.
RING_SECONDS = 0.01
NEVER = math.inf

# Scores, or why there is none.
Reply: TypeAlias = list[Score | str]


@dataclass(frozen=True, slots=True)
class Request:
    uncompiled: UncompiledScoring
    answers: Sequence[AnswerToScore]


@dataclass(frozen=True, slots=True)
class ScoringLimits:
    """CPU time of an answer: `seconds`, or `later_seconds` once slow ones of a run took `slow_seconds`."""

    # Far above what an honest answer takes; it bounds what one hostile answer costs the others.
    seconds: float = 3.0
    later_seconds: float = 0.2
    slow_seconds: float = 60.0
    memory_bytes: int = 2 * 1024**3


class _TimeIsUp(BaseException):
    """An answer has passed its bound. No scorer catches this."""


class BoundedScorer:
    """Scores within limits; what passes them is impossible to score."""

    def __init__(self, limits: ScoringLimits) -> None:
        self._limits = limits
        # In CPU time of the process: on a busy machine a quick scorer is not slow.
        self._deadline = NEVER
        self._compiled = lru_cache(MAX_CACHED_SCORINGS)(self._compile)
        self._times = lru_cache(MAX_CACHED_SCORINGS)(self._new_times)

    def score(self, uncompiled: UncompiledScoring, answers: Sequence[AnswerToScore]) -> list[Scored]:
        """The first of them, as many as are scored until a reply is due."""
        scoring, (_, slow_time) = self._compiled(uncompiled), self._times(uncompiled.shared_by)
        due = time.monotonic() + REPLY_SECONDS
        scored: list[Scored] = []
        # One timer for all: to set one for each answer would take as long as most answers.
        signal.setitimer(signal.ITIMER_PROF, RING_SECONDS, RING_SECONDS)
        try:
            ended = time.process_time()
            for answer in answers:
                started = ended
                bound = self._limits.seconds if slow_time.left > 0 else self._limits.later_seconds
                scored.append(self._score_in_time(scoring, answer, started, bound))
                ended = time.process_time()
                spent = ended - started
                slow_time.left -= spent if spent > SLOW_SECONDS else 0
                if time.monotonic() > due:
                    break
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        return scored

    def ring(self, *_: object) -> None:
        """Ends the answer that has passed its bound. Python ignores what is raised while an object is
        finalised: then the next ring ends it.
        """
        if time.process_time() > self._deadline:
            raise _TimeIsUp

    def _score_in_time(
        self, scoring: CompiledScoring, answer: AnswerToScore, started: float, seconds: float
    ) -> Scored:
        try:
            try:
                self._deadline = started + seconds
                return score_answer(scoring, *answer)
            finally:
                self._deadline = NEVER
        except ScoringImpossible as impossible:
            return impossible
        except _TimeIsUp:
            # It may have rung before the deadline was lifted.
            self._deadline = NEVER
            return ScoringImpossible(f"it took over {seconds:g} s")
        except MemoryError:
            return ScoringImpossible("it took too much memory")
        except Exception as error:  # noqa: BLE001  # the edge: whatever a scorer does, others have scores
            return ScoringImpossible(f"the scorer failed with {error!r:.200}")

    def _compile(self, uncompiled: UncompiledScoring) -> CompiledScoring:
        for_patterns, _ = self._times(uncompiled.shared_by)
        scoring = compile_scoring(uncompiled.scoring, uncompiled.method, for_patterns)
        load_libraries(scoring.metrics)
        return scoring

    def _new_times(self, _: str) -> tuple[SlowTime, SlowTime]:
        """Times for patterns, which have bounds of their own, and for whole answers."""
        return SlowTime(), SlowTime(self._limits.slow_seconds)


def main() -> None:
    seconds, later_seconds, slow_seconds, memory_bytes = map(float, sys.argv[1:])
    limits = ScoringLimits(seconds, later_seconds, slow_seconds, int(memory_bytes))
    scorer = BoundedScorer(limits)
    # PROF counts CPU time of the process, user and system.
    signal.signal(signal.SIGPROF, scorer.ring)
    answer_requests(partial(reply, scorer), limits.memory_bytes)


def reply(scorer: BoundedScorer, request: bytes) -> bytes:
    # An empty request asks whether the process is there.
    if not request:
        return b""
    asked = from_bytes(request, Request)
    scored = scorer.score(asked.uncompiled, asked.answers)
    return to_bytes([str(one) if isinstance(one, ScoringImpossible) else one for one in scored])


if __name__ == "__main__":
    main()
