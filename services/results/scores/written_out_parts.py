"""How large a pattern becomes where the `regex` module compiles it."""

from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public tells what is repeated

_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def written_out_parts(pattern: str) -> int:
    """Of a pattern that `re` reads: what comes at least n times is written out n times, also in another."""
    return _parts(_parser.parse(pattern))


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
