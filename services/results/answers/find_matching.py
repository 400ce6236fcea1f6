"""Looks for answers that match, for a bounded time per call, however few of many do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.common.clock import Clock
from services.results.answers.answer_filter import AnswerMatch
from services.results.answers.ports import AnswerStore, KeyScan
from services.results.outcomes.outcome import OutcomeKey

# A call ends soon after; the last window may take a little longer.
SCAN_SECONDS = 0.4
FIRST_WINDOW = 512
MOST_WINDOW = 8192
WINDOW_GROWTH = 4
# Of texts that are looked through at a time.
WINDOW_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """What matches, and after which key to go on; None at the end."""

    keys: Sequence[OutcomeKey]
    after: OutcomeKey | None


@dataclass(frozen=True, slots=True)
class FindMatching:
    answers: AnswerStore
    clock: Clock

    async def find(self, scan: KeyScan, wanted: AnswerMatch) -> FoundKeys:
        """At most `scan.most`, and fewer, even none, where the time is over before."""
        until = self.clock.monotonic() + SCAN_SECONDS
        found: list[OutcomeKey] = []
        window = replace(scan, most=FIRST_WINDOW)
        while True:
            keys = await self.answers.keys(window)
            if not keys:
                return FoundKeys(found, None)
            matched = await self.answers.match(scan.run_id, keys, wanted, WINDOW_BYTES)
            found += [keys[place] for place in matched.places]
            if len(found) >= scan.most:
                return FoundKeys(found[: scan.most], found[scan.most - 1])
            is_end = len(keys) < window.most and matched.judged == len(keys)
            last = keys[matched.judged - 1]
            if is_end or self.clock.monotonic() >= until:
                return FoundKeys(found, None if is_end else last)
            window = replace(window, after=last, most=_next_size(window.most, matched.judged))


def _next_size(asked: int, judged: int) -> int:
    """More at a time where texts are short; of long ones no more than were looked at."""
    return min(asked * WINDOW_GROWTH, MOST_WINDOW) if judged >= asked else max(1, judged)
