"""How large a pattern becomes where `regex` compiles it: what comes n times is written out n times."""

import re
import warnings
from functools import lru_cache
from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public tells what is repeated

# Each takes some hundred bytes, so that twenty letters such as "(?:x{1000}){1000000}" take all memory.
MOST_PARTS = 10_000
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


@lru_cache(maxsize=512)  # as many as `re` keeps
def check_pattern_size(pattern: str) -> None:
    """Raises re.error, also where `re` does not read it, and RecursionError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parts = _parts(_parser.parse(pattern))
    if parts > MOST_PARTS:
        raise re.error(
            f"it repeats too much: written out it has {parts:,} parts, and may have {MOST_PARTS:,}"
        )


def _parts(node: object) -> int:
    if isinstance(node, _parser.SubPattern):
        return sum(_parts_of_item(*item) for item in node)
    if isinstance(node, list | tuple):
        return sum(map(_parts, node))
    return 0


def _parts_of_item(kind: object, content: object) -> int:
    if kind not in _REPEATS:
        return 1 + _parts(content)
    assert isinstance(content, tuple)
    least, _, repeated = content
    return 1 + max(int(least), 1) * _parts(repeated)
