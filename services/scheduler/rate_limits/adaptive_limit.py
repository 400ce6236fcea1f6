"""Finds how many requests per second a provider takes from one key, and keeps slightly below.

Nothing is limited until the provider refuses. `taken` are the requests per second that it took from all
workers together over the last 3 s: while it refuses others, that is what it allows.

- refused within 20 s more than 1 % of what the rate sends in that time, and more than one request:
  rate = 0.98 × taken, and from the second time on no more than 0.95 × rate and no less than 0.5 × rate
- nobody refused for 5 s:
  rate = rate × (1 + step), and again every 5 s; step = 1 %, doubled for each 30 s of quiet, up to 16 %

Why so. A provider counts by a bucket, which lets a burst through: over 3 s it may take more than it allows
for long. Hence the cut of at least 5 %: two or three of them reach any limit. Hence also the bound of one
half: a figure that is too low, since it was taken while the workers stood back, costs no more than that. A
refusal now and then is borne, since workers do not send in step, and a rate that nobody ever refuses is
lower than it need be. After a cut refusals count for nothing for 2 s, until the workers have heard of it.

At 1 % every 5 s a bucket with the burst of one second hides too high a rate for half a minute; then come
some refusals, 1 % at most, and a cut. The steps grow with the quiet, so that a limit that was raised, or
one that was taken from a stray refusal, is soon left behind. A rate is raised only while requests wait for
it; else it would grow without being tried.

What the provider's headers allow is the upper limit, by the same margin of 2 %.
"""

from collections import deque

from services.scheduler.rate_limits.rate_meter import Measured

BELOW = 0.98
_LEAST_CUT = 0.95
_MOST_CUT = 0.5
_BORNE_SHARE = 0.01
_BORNE_SECONDS = 20.0
_SETTLE_SECONDS = 2.0
_PROBE_SECONDS = 5.0
_STEP = 0.01
_DOUBLING_SECONDS = 30.0
_LARGEST_STEP = 0.16
# One request a minute: a provider that allows less makes itself heard by its own words.
_SLOWEST = 1 / 60


class AdaptiveLimit:
    """The rate so far is that of an earlier leader; it is tried for a while before it is raised."""

    def __init__(self, now: float, rate: float | None = None) -> None:
        self._rate = rate
        self._refused = 0
        self._refusals: deque[tuple[float, int]] = deque()
        self._refused_at = now
        self._settled_at = now
        self._probe_at = now + _PROBE_SECONDS

    def step(self, measured: Measured, now: float) -> float | None:
        """Requests per second from now on; None while no limit is known."""
        if measured.refused > self._refused:
            self._note_refusals(measured.refused - self._refused, now)
            self._refused = measured.refused
            if self._is_too_much(self._rate or measured.taken_per_second):
                self._cut(measured.taken_per_second, now)
        elif self._rate is not None and measured.waiting and now >= self._probe_at:
            self._rate *= 1 + self._step(now - self._refused_at)
            self._probe_at = now + _PROBE_SECONDS
        allowed = measured.allowed_requests
        known = [rate for rate in (self._rate, allowed and BELOW * allowed) if rate is not None]
        return min(known, default=None)

    def _note_refusals(self, count: int, now: float) -> None:
        self._refused_at = now
        self._probe_at = now + _PROBE_SECONDS
        while self._refusals and self._refusals[0][0] < now - _BORNE_SECONDS:
            self._refusals.popleft()
        if now >= self._settled_at:
            self._refusals.append((now, count))

    def _is_too_much(self, rate: float) -> bool:
        borne = max(1.0, _BORNE_SHARE * _BORNE_SECONDS * rate)
        return sum(count for _, count in self._refusals) > borne

    def _cut(self, taken: float, now: float) -> None:
        if taken <= 0:
            return
        rate = BELOW * taken
        if self._rate is not None:
            rate = min(max(rate, _MOST_CUT * self._rate), _LEAST_CUT * self._rate)
        self._rate = max(rate, _SLOWEST)
        self._refusals.clear()
        self._settled_at = now + _SETTLE_SECONDS

    def _step(self, quiet_seconds: float) -> float:
        return min(_LARGEST_STEP, _STEP * 2 ** (quiet_seconds // _DOUBLING_SECONDS))
