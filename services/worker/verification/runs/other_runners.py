"""Counts results of tests in what runners other than pytest printed."""

import re
from collections.abc import Sequence

from services.worker.verification.printed import plain_lines

# Longer ones say nothing, and searching them takes the square of their length.
_MAX_LINE_CHARACTERS = 500
# A line for each result, or with how many there are. Each is of another runner, or of another option of one.
_RESULTS: Sequence[re.Pattern[str]] = tuple(
    re.compile(pattern)
    for pattern in (
        # The Test Anything Protocol, as of node, bats and prove.
        r"\s*(?:not )?ok \d+\b",
        # The report of node's own runner, mocha, jest, vitest.
        r"\s*[✔✖✓✗√×✕] ",
        # go, and scripts that print a word for each check.
        r"\s*--- (?:PASS|FAIL): ",
        r"(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))",
        r"\W{0,8}(?:PASS|FAIL)(?:ED)?\b\W{0,8}\w",
        # cargo, unittest, CTest and GoogleTest, one by one.
        r"test \S+ (?:- .*)?\.\.\. (?:ok|FAILED)\b",
        r"test\w* \(\S+\).* \.\.\. (?:ok|FAIL|ERROR)\b",
        r"\s*\d+/\d+ Test\s+#\d+: ",
        r"\[\s+(?:OK|FAILED)\s+\] .*\(\d+ ms\)",
        # Counts: unittest, cargo, jest, vitest, mocha, Maven, rspec, minitest, PHPUnit, CTest, .NET.
        r"Ran (\d{1,7}) tests? in ",
        r"test result: \w+\. (\d{1,7}) passed; (\d{1,7}) failed",
        r"Tests:\s+(?:.*\b)?(\d{1,7}) total",
        r"\s*Tests\s+.*\((\d{1,7})\)\s*$",
        r"\s*(\d{1,7}) (?:passing|failing)\b",
        r"(?:\[\w+\] )?Tests run: (\d{1,7}), Failures: ",
        r"(\d{1,7}) tests completed",
        r"(\d{1,7}) examples?, \d+ failures?",
        r"(\d{1,7}) runs, \d+ assertions",
        r"(?:OK \(|Tests: )(\d{1,7})(?: tests?)?, (?:A|\d+ a)ssertions?",
        r"\d+% tests passed, \d+ tests failed out of (\d{1,7})",
        r"Total tests: (\d{1,7})",
    )
)


def results_of_others(log: str) -> int:
    """How many results there are; of runners whose results are said in several ways, the most.

    A number to compare with that of the same tests on other files: it may be a multiple of the tests.
    """
    lines = [line[:_MAX_LINE_CHARACTERS] for line in plain_lines(log)]
    return max(sum(_count(pattern, line) for line in lines) for pattern in _RESULTS)


def _count(pattern: re.Pattern[str], line: str) -> int:
    found = pattern.match(line)
    if found is None:
        return 0
    return sum(int(each) for each in found.groups()) if found.groups() else 1
