"""Parses the rate limits in response headers; a doubtful value counts as absent."""

import math
import re
from collections.abc import Mapping

from services.worker.rate_limits.limiter import AllowedLimits

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:([\d.]+)ms)?")
# Providers count per minute, some of OpenAI's limits per second.
_MINUTE = 60.0
_SECOND = 1.0
# How far off a window may look: values are rounded, and other requests come in between.
_TOLERANCE = 0.3


def parse_limits(headers: Mapping[str, str]) -> AllowedLimits | None:
    """None where no header names a limit."""
    if "x-ratelimit-limit-requests" in headers or "x-ratelimit-limit-tokens" in headers:
        return AllowedLimits(_openai_rate(headers, "requests"), _openai_rate(headers, "tokens"))
    if "anthropic-ratelimit-requests-limit" in headers or "anthropic-ratelimit-tokens-limit" in headers:
        return AllowedLimits(_anthropic_rate(headers, "requests"), _anthropic_rate(headers, "tokens"))
    return None


def _openai_rate(headers: Mapping[str, str], what: str) -> float | None:
    """The headers name no window, but how much is used and when it is all refilled: limit × reset / used.

    Only windows of a minute and a second become a rate; the limit of a day is not spread over the day.
    """
    limit = _number(headers.get(f"x-ratelimit-limit-{what}"))
    left = _number(headers.get(f"x-ratelimit-remaining-{what}"))
    reset = _seconds(headers.get(f"x-ratelimit-reset-{what}"))
    # Nothing used yet: the reset says nothing about the window.
    if limit is None or left is None or reset is None or left >= limit:
        return None
    window = limit * reset / (limit - left)
    for known in (_MINUTE, _SECOND):
        if abs(window - known) <= _TOLERANCE * known:
            return limit / known
    return None


def _anthropic_rate(headers: Mapping[str, str], what: str) -> float | None:
    """Anthropic's limits are per minute."""
    limit = _number(headers.get(f"anthropic-ratelimit-{what}-limit"))
    return None if limit is None else limit / _MINUTE


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _seconds(text: str | None) -> float | None:
    """ "6m0s", "1.5s", "120ms", or plain seconds."""
    plain = _number(text)
    if plain is not None:
        return plain
    match = _DURATION.fullmatch(text or "")
    if not text or match is None:
        return None
    hours, minutes, seconds, milliseconds = (_number(part) or 0.0 for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
