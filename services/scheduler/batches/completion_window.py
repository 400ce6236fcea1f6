"""How long a batch may take, as clients write it: "24h", or minutes as in "90m"."""

import re
from datetime import timedelta

LEAST = timedelta(hours=1)
MOST = timedelta(hours=168)
ADVICE = 'must be hours or minutes from "1h" to "168h", such as "24h" or "90m"'

_WINDOW = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[hm])")
_UNITS = {"h": timedelta(hours=1), "m": timedelta(minutes=1)}


def window_of(text: str) -> timedelta | None:
    """None for what is no window, or too short or too long a one."""
    found = _WINDOW.fullmatch(text)
    if found is None:
        return None
    window = int(found["number"]) * _UNITS[found["unit"]]
    return window if LEAST <= window <= MOST else None
