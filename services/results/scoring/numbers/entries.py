"""Lists of values with names, as "Ann: 12" and "b) 6", of which none is said to be the answer."""

import re

from services.results.scoring.answer_words import has_one_of
from services.results.scoring.numbers.written_numbers import read_number

# Several values with names, as "Ann: 12", "x = 12" and "a) 12".
_ENTRY = re.compile(
    r"^[^\w\n]{0,20}(?P<label>[^\W\d][^\n:=()\d+*/^]{0,40}?)\s*[:=)]"
    r"\s*(?P<value>\S{0,3}\d\S*(?:\s\w+)?)[ \t]*$",
    re.MULTILINE,
)
# One of several that are numbered, as "Answer 1: 5" and "b) 6".
_NUMBERED_ENTRY = re.compile(
    r"(?:^\W{0,8}|(?:(?<=[.,;\d%] )|(?<=and ))[^\w+*/×÷=-]{0,8})"
    r"(?:(?P<name>[^\W\d_]{1,12})\s?)?[(#]?(?P<mark>\d{1,2}"
    r"|(?<![^\W\d_])(?:[a-e]|i{1,3}|iv))\W{0,3}[:=)]\W{0,3}?"
    r"(?:[a-z] ?= ?)?(?P<value>[-$€£]{0,2}\d[\d.,]*)(?!\s?[-+*/×÷^=(\d])",
    re.MULTILINE | re.IGNORECASE,
)
_NAMED = r"[\"']?[^\W\d_][\w' ]{0,30}[\"']?: ?[-$€£]{0,2}\d[\d.,]*\d?(?: [a-z]+)?"
_ON_ONE_LINE = re.compile(rf"\W*{_NAMED}(?:[,;] (?:and )?{_NAMED})+\W*")
_ROW = re.compile(
    r"^[ \t]*\|[ \t]*(?P<label>[^|\n]{1,80})\|(?:[^|\n]*\|)*?[ \t]*"
    r"(?P<value>[-$€£]{0,2}\d[\d.,]*)[ \t]*\|[ \t]*$",
    re.MULTILINE,
)
_BARE_LINE = re.compile(r"[ \t]*-?\d[\d.,]*[ \t]*")
# One of several has one of these.
_MARKS_OF_ENTRIES = ("2:", "2)", "3:", "3)", "b:", "b)", "B:", "B)", "c)", "ii)", "ii:")
_STEPS = frozenset({"step", "stage"})
_SUM = re.compile(
    r"total|sum|answer|result|final|all|overall|altogether|difference|profit|left|remain", re.IGNORECASE
)


def has_several_entries(text: str) -> bool:
    """A list of named values without a sum at its end: which of them is the answer is not said."""
    if _are_in_one_line(text) or ("\n" in text and (_are_rows(text) or _are_bare_lines(text))):
        return True
    numbered = [*_NUMBERED_ENTRY.finditer(text)] if has_one_of(text, _MARKS_OF_ENTRIES) else []
    if (
        len(numbered) > 1
        and not text[numbered[-1].end() :].strip(" .%*\n")
        and not _STEPS & {(entry["name"] or "").casefold() for entry in numbered}
    ):
        marks, values = ({entry[part] for entry in numbered} for part in ("mark", "value"))
        return len(marks) > 1 and len(values) > 1
    entries = [*_ENTRY.finditer(text)] if "\n" in text else []
    is_at_the_end = bool(entries) and not text[entries[-1].end() :].strip()
    if len(entries) < 2 or not is_at_the_end or _SUM.search(entries[-1]["label"]):
        return False
    if _is_computed(entries[-1]["label"].strip(), text[: entries[-1].start()]):
        return False
    last = [read_number(entry["value"]) for entry in entries[-2:]]
    return last[0] is not None and last[1] is not None and last[0].value != last[1].value


def _are_in_one_line(text: str) -> bool:
    """ "Tom: 3, Ann: 4", and {"a": 1, "b": 2}."""
    if text.count(":") < 2 or not _ON_ONE_LINE.fullmatch(text):
        return False
    last = text.rpartition(":")[0].rpartition(",")[2]
    return not _SUM.search(last)


def _are_rows(text: str) -> bool:
    """A table of values with names, whose last row is no sum."""
    rows = [*_ROW.finditer(text)] if text.rstrip().endswith("|") else []
    rows = [row for row in rows if any(map(str.isalpha, row["label"]))]
    if len(rows) < 2 or text[rows[-1].end() :].strip() or _SUM.search(rows[-1]["label"]):
        return False
    return rows[-1]["value"] != rows[-2]["value"] and rows[-2].end() + 1 == rows[-1].start()


def _are_bare_lines(text: str) -> bool:
    """Nothing but several numbers, each on a line of its own."""
    return (
        text.strip().count("\n") > 1
        and len({*text.split()}) > 2
        and all(map(_BARE_LINE.fullmatch, text.strip().splitlines()))
    )


def _is_computed(name: str, above: str) -> bool:
    return re.search(rf"{re.escape(name)}\s*=[^\n=]*[-+*/×÷]", above) is not None
