"""Finds how many requests per second a provider accepts from one key, and stays slightly below.

There is no limit until the provider answers 429. `accepted` is the rate that it accepted from all workers
together over the last 3 s: while it rate limits other requests, that is what it allows.

- within 20 s more than 1 % of what the rate sends in that time was rate limited, and more than one request:
  rate = 0.98 × accepted, and from the second time on at most 0.95 × rate and at least 0.5 × rate
- no request was rate limited for 5 s:
  rate = rate × (1 + step), and again every 5 s; step = 1 %, doubled for each 30 s of quiet, up to 16 %

Reasons. A provider counts by a token bucket, which lets a burst through: over 3 s it may accept more than it
allows for long. Hence the cut of at least 5 %: two or three cuts reach any limit. Hence also the bound of one
half: a figure that is too low, because workers were paused, costs no more than that. Single 429s are
tolerated, since workers do not send in step, and a rate without any 429 is lower than it could be. For 2 s
after a cut 429s are ignored, until workers have received the new quota.

At 1 % every 5 s a bucket with a burst of one second hides too high a rate for half a minute; then some
requests are rate limited, 1 % at most, and the rate is cut. Steps grow with the quiet time, so that a limit
that was raised, or one derived from a stray 429, is soon left behind. A rate is raised only while requests
wait for it; otherwise it would grow without being tried.

The provider's rate limit headers are an upper bound, with the same margin of 2 %.
"""

from collections import deque

from services.scheduler.rate_limits.rate_meter import Measured

# The figures below are explained above, with what speaks against larger and smaller ones.
BELOW = 0.98
_MIN_CUT = 0.95
_MAX_CUT = 0.5
_TOLERATED_SHARE = 0.01
_TOLERATED_SECONDS = 20.0
_EFFECT_SECONDS = 2.0
_PROBE_SECONDS = 5.0
_STEP = 0.01
_DOUBLING_SECONDS = 30.0
_MAX_STEP = 0.16
# One request a minute: a provider that allows less says so with Retry-After.
_MIN_RATE = 1 / 60


class AdaptiveLimit:
    """Starts with the rate of an earlier leader, if any, and tries it for a while before raising it."""

    def __init__(self, now: float, rate: float | None = None) -> None:
        self._rate = rate
        self._rate_limited = 0
        self._recent_429s: deque[tuple[float, int]] = deque()
        self._rate_limited_at = now
        self._cut_takes_effect_at = now
        self._probe_at = now + _PROBE_SECONDS

    def step(self, measured: Measured, now: float) -> float | None:
        """Returns the requests per second from now on; None if no limit is known."""
        if measured.rate_limited > self._rate_limited:
            self._note_rate_limited(measured.rate_limited - self._rate_limited, now)
            self._rate_limited = measured.rate_limited
            # Without a rate yet, what was accepted says how many requests one per cent is.
            if self._is_too_much(self._rate or measured.accepted_per_second):
                self._cut(measured.accepted_per_second, now)
        elif self._rate is not None and measured.requests_waiting_for_quota and now >= self._probe_at:
            self._rate *= 1 + self._step(now - self._rate_limited_at)
            # Five seconds without a 429 from here, whatever was planned before.
            self._probe_at = now + _PROBE_SECONDS
        allowed = measured.allowed_requests_per_second
        known = [rate for rate in (self._rate, allowed and BELOW * allowed) if rate is not None]
        return min(known, default=None)

    def _note_rate_limited(self, count: int, now: float) -> None:
        self._rate_limited_at = now
        self._probe_at = now + _PROBE_SECONDS
        while self._recent_429s and self._recent_429s[0][0] < now - _TOLERATED_SECONDS:
            self._recent_429s.popleft()
        if now >= self._cut_takes_effect_at:
            self._recent_429s.append((now, count))

    def _is_too_much(self, rate: float) -> bool:
        tolerated = max(1.0, _TOLERATED_SHARE * _TOLERATED_SECONDS * rate)
        return sum(count for _, count in self._recent_429s) > tolerated

    def _cut(self, accepted: float, now: float) -> None:
        # Nothing measured, as after a change of leader: a cut to 0 would end the sending.
        if accepted <= 0:
            return
        rate = BELOW * accepted
        if self._rate is not None:
            rate = min(max(rate, _MAX_CUT * self._rate), _MIN_CUT * self._rate)
        self._rate = max(rate, _MIN_RATE)
        # They were answers to the old rate.
        self._recent_429s.clear()
        self._cut_takes_effect_at = now + _EFFECT_SECONDS

    def _step(self, quiet_seconds: float) -> float:
        return min(_MAX_STEP, _STEP * 2 ** (quiet_seconds // _DOUBLING_SECONDS))
