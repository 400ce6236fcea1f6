"""How long a run may take from its acceptance to its end, as people write it: "24h", "90m"."""

import re

_FORM = re.compile(r"([1-9][0-9]{0,5})([hm])")
_SECONDS = {"h": 3600, "m": 60}


def window_seconds(text: str) -> int:
    """Raises ValueError for what is no window; how long one may be the scheduler knows."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError('a window is written in hours or minutes, such as "24h" or "90m"')
    return int(found[1]) * _SECONDS[found[2]]
