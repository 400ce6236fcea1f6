"""Reads results of tests from the output of pytest, whichever of its options were set.

The short summary (`-rA`) comes first. Without tests that passed in it, the counts at the end of
each session are read; with `-qq`, which prints none, the results of `-v`, or the marks of progress.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from proctor.values.rollout import RanTests
from services.worker.verification.printed import plain_lines
from services.worker.verification.ran_tests import ran_tests

_SUMMARY = "short test summary info"
_WORDS = "PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|SUBPASSED|SUBFAILED|SUBSKIPPED|SUBXFAIL|SUBXPASS"
_OF_SUMMARY = re.compile(rf"({_WORDS})\b(?:\s+(\S+\.py::[^\[\s]+))?")
_OF_TEST = re.compile(rf"(\S+\.py::[^\[\s]+).*\s({_WORDS})(?:\s+\(.*\))?\s*(?:\[\s*\d+%\])?\s*$")
_COUNT = r"\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|rerun|warnings?|subtests \w+)"
_COUNTS = re.compile(rf"=*\s*({_COUNT}(?:, {_COUNT})*) in \d+(?:\.\d+)?s\b")
_BEGAN = re.compile(r"^began$", re.MULTILINE)
_KEPT = re.compile(r"^kept: (\d{1,9}) passed, (\d{1,9}) failed$", re.MULTILINE)
_NUMBER = re.compile(r"(\d+) (?:subtests )?([a-z]+)")
_PROGRESS = re.compile(r"(?:\S+\.py )?([.FEsxXR]+)\s*(?:\[\s*\d+%\]|\[\s*\d+/\d+\])?\s*$")
_OF_MARKS = {".": "PASSED", "F": "FAILED", "E": "ERROR", "s": "SKIPPED", "x": "XFAIL", "X": "XPASS"}
_OF_COUNTS = {"error": "ERROR", "errors": "ERROR", "xfailed": "XFAIL", "xpassed": "XPASS"} | {
    word.lower(): word for word in ("PASSED", "FAILED", "SKIPPED")
}
# A test that is skipped, or fails before it begins, does not run.
_RAN = frozenset({"PASSED", "FAILED", "XFAIL", "XPASS"})
_PASSES = frozenset({"PASSED", "SKIPPED", "XFAIL", "SUBPASSED", "SUBSKIPPED", "SUBXFAIL"})


@dataclass(frozen=True, slots=True)
class PytestResults:
    """`summaries` is how many short summaries there are; `ran` has no names where none was printed."""

    passed: int
    total: int
    has_passed: bool
    summaries: int
    ran: RanTests = field(default_factory=RanTests)

    @property
    def is_passed(self) -> bool:
        """Every test passed, and one did so without being skipped or expected to fail."""
        return self.has_passed and self.passed == self.total


def read_results(log: str) -> PytestResults | None:
    """None where there is no result that can be read.

    All summaries count: one that the files print does not replace pytest's own.
    """
    lines = plain_lines(log)
    summaries = sum(_SUMMARY in line for line in lines)
    of_summary, of_tests = list(_summarised(lines)), list(_of_tests(lines))
    summarised = Counter(word for word, _ in of_summary)
    # Without -rA the summary has only tests that failed.
    others = (
        ()
        if "PASSED" in summarised
        else (
            _counted(lines),
            (word for word, _ in of_tests),
            _of_progress(lines),
        )
    )
    found = next((each for each in map(Counter, others) if each.total()), Counter())
    bad = {word: count for word, count in summarised.items() if word not in _PASSES}
    found = found | Counter(bad) if found else summarised
    if not found:
        return None
    passed = sum(count for word, count in found.items() if word in _PASSES)
    ran = _ran(of_summary if "PASSED" in summarised else of_tests, sum(found[word] for word in _RAN))
    ran = replace(ran, failed=found.total() - passed)
    return PytestResults(passed, found.total(), found["PASSED"] > 0, summaries, ran)


def listed_results(content: bytes) -> PytestResults | None:
    """Those of a report in the Common Test Report Format; None for what is none."""
    try:
        tests = json.loads(content)["results"]["tests"]
        found = [(str(each["name"]), str(each["status"])) for each in tests]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    if not found:
        return None
    ran = [name for name, status in found if status in ("passed", "failed")]
    failed = sum(status not in ("passed", "skipped") for _, status in found)
    has_passed = any(status == "passed" for _, status in found)
    return PytestResults(
        len(found) - failed, len(found), has_passed, 0, replace(ran_tests(ran), failed=failed)
    )


def kept_results(content: bytes) -> PytestResults | None:
    """Those that the runner of pytest kept for itself, of all its sessions; None where it was not started."""
    found = _KEPT.findall(content.decode("utf-8", "replace"))
    if not found:
        return None
    passed, failed = (sum(int(each[place]) for each in found) for place in (0, 1))
    ran = RanTests(passed + failed, failed=failed)
    return PytestResults(passed, passed + failed, passed > 0, 0, ran) if ran.count else None


def without_kept(log: str) -> str:
    """What the runner of pytest wrote beside its counts: collections that failed are counted there too."""
    return _BEGAN.sub("", _KEPT.sub("", log))


def unended_sessions(content: bytes) -> int:
    """How many sessions of the runner of pytest have begun, and kept no counts at their end."""
    text = content.decode("utf-8", "replace")
    return max(0, len(_BEGAN.findall(text)) - len(_KEPT.findall(text)))


def _ran(results: Sequence[tuple[str, str]], count: int) -> RanTests:
    """The tests by their names, where each of them was printed."""
    names = [name for word, name in results if word in _RAN]
    return ran_tests(names) if len(names) == count and all(names) else RanTests(count)


def _summarised(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Results and the names of their tests, empty for what is none."""
    is_in_summary = False
    for line in lines:
        is_in_summary = is_in_summary or _SUMMARY in line
        if is_in_summary and (match := _OF_SUMMARY.match(line)):
            yield match[1], match[2] or ""


def _counted(lines: Sequence[str]) -> Iterator[str]:
    for match in filter(None, map(_COUNTS.match, lines)):
        for number, word in _NUMBER.findall(match[1]):
            if word in _OF_COUNTS:
                yield from [_OF_COUNTS[word]] * int(number)


def _of_tests(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((match[2], match[1]) for match in map(_OF_TEST.match, lines) if match)


def _of_progress(lines: Sequence[str]) -> Iterator[str]:
    for match in filter(None, map(_PROGRESS.match, lines)):
        yield from (_OF_MARKS[mark] for mark in match[1] if mark in _OF_MARKS)
