"""Output of a verifier as plain lines: without colours, stamps of the time and returns of the carriage."""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78cDEHM])")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_DATE = r"(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[-/ ]M[-/ ]\d{4}|M\s+\d{1,2}(?:,?\s+\d{4})?(?!:))"
_PARTS = (
    rf"{_DATE.replace('M', _MONTH)}(?:[T:_]{_TIME})?",
    _TIME,
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b,?",
    r"(?:UTC|GMT|(?:[ECMPJIBW]|CE|EE|WE|AE|NZ)[SD]?T|[+-]\d\d:?\d\d)(?: 20\d\d)?|[AP]M",
    # Seconds since the epoch, and since the start.
    r"\d{10,13}(?:\.\d+)?|\d+\.\d+(?=s?\])s?",
    # A level, or the worker of pytest-xdist, but no result.
    r"(?<=\[)(?!PASS|FAIL|OK\])\w+(?=\])",
)
_AFTER = r"[\])|:>,-]*(?:\s+|(?<=[\])|:>-])|$)[\[(|>:-]*\s*"
_STAMP = re.compile(rf"^[\s\[(]*(?:(?:{'|'.join(_PARTS)}){_AFTER})+")


def plain_lines(text: str) -> list[str]:
    """Each line without the stamps at its start. It ends with LF, CR LF, or a CR that overwrites it."""
    return [_STAMP.sub("", line, count=1) for line in re.split(r"\r*\n|\r", _ESCAPES.sub("", text))]
