"""Results are read whichever options of pytest were set, and however its output was piped."""

import pytest

from proctor.values.rollout import RanTests
from services.worker.verification.printed import plain_lines
from services.worker.verification.pytest_results import kept_results, read_results, without_kept

RA = "== short test summary info ==\nPASSED t.py::a\nSKIPPED [1] t.py\n=== 1 passed, 1 skipped in 0.03s ===\n"
RA_FAILED = (
    "=== short test summary info ===\nPASSED t.py::a\nFAILED t.py::b - x\n=== 1 failed, 1 passed in 0.03s ==="
)
PLAIN = "t.py ..   [100%]\n\n=== 2 passed in 0.03s ===\n"
PLAIN_FAILED = (
    "t.py .F [100%]\n=== short test summary info ===\nFAILED t.py::b\n=== 1 failed, 1 passed in 0.03s ===\n"
)
QUIET = "..s                        [100%]\n"
QUIET_FAILED = ".F                        [100%]\n=== short test summary info ===\nFAILED t.py::b - x\n"
FORMS = {
    "the summary": (RA, RA_FAILED),
    "the counts": (PLAIN, PLAIN_FAILED),
    "-q": ("..   [100%]\n2 passed in 0.03s\n", ".F   [100%]\nFAILED t.py::b\n1 failed, 1 passed in 0.03s\n"),
    "-qq": (QUIET, QUIET_FAILED),
    "-v without counts": (
        "t.py::a PASSED  [ 50%]\nt.py::b PASSED [100%]\n",
        "t.py::a PASSED\nt.py::b FAILED [100%]\n",
    ),
    "many": (
        "=== 12 passed, 2 xfailed, 3 warnings in 75.12s (0:01:15) ===",
        "=== 12 passed, 1 error in 3.10s ===",
    ),
}
STAMPS = (
    "",
    "[12:00:01] ",
    "12:00:01 ",
    "Nov 28 12:00:01 ",
    "2026-11-28T12:00:01.123Z ",
    "2026-11-28 12:00:01,123 | ",
    "[2026-11-28T12:00:00+00:00] ",
    "Sat Nov 28 12:00:01 PM CET 2026: ",
    "28/Nov/2026 12:00:01 ",
    "1732795201.123456 ",
    "[ 12.345678] ",
    "[12:00:01] [INFO] ",
)


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("form", FORMS)
def test_results_are_read_in_every_form(form: str, end: str, stamp: str) -> None:
    for log, is_passed in zip(FORMS[form], (True, False), strict=True):
        piped = "".join(f"{stamp}{line}{end}" for line in log.splitlines())
        results = read_results(piped)
        assert results is not None
        assert results.is_passed is is_passed


def test_colours_are_no_part_of_a_result() -> None:
    lines = "\x1b[1m== short test summary info ==\x1b[0m\n\x1b[32mPASSED\x1b[0m ../t.py::\x1b[1ma\x1b[0m\n"
    results = read_results(lines)
    assert results is not None
    assert results.is_passed


@pytest.mark.parametrize(
    "log", ["", "short test summary info\n", "no tests ran in 0.01s", "done.\n", "PASSED t.py::a"]
)
def test_output_without_a_result_is_none(log: str) -> None:
    assert read_results(log) is None


@pytest.mark.parametrize(
    "log",
    [
        "short test summary info\nPASSED a\n" + RA_FAILED,
        "=== 1 passed in 0.01s ===\n" + PLAIN_FAILED,
        "short test summary info\nPASSED a\nXPASS b\n",
        "=== 2 skipped in 0.01s ===",
        "=== 2 passed, 1 xpassed in 0.01s ===",
    ],
)
def test_one_session_that_passed_does_not_hide_another(log: str) -> None:
    results = read_results(log)
    assert results is not None
    assert not results.is_passed


@pytest.mark.parametrize(
    "line", ["3 passed in 0.03s", "FAILED x", "Monitor x", "Maybe 3", "TEST x", "[100%]", "1.5 ok"]
)
def test_a_line_that_begins_like_a_stamp_is_kept(line: str) -> None:
    assert plain_lines(line) == [line]


def test_counts_that_the_runner_kept_are_those_of_all_its_sessions() -> None:
    kept = b"kept: 2 passed, 0 failed\npytest ended with exit code 5\nkept: 0 passed, 1 failed\n"
    results = kept_results(kept)
    assert results is not None
    assert (results.passed, results.total, results.is_passed) == (2, 3, False)
    assert results.ran == RanTests(3, failed=1)
    assert kept_results(b"pytest ended with exit code 4\n") is None
    assert without_kept(kept.decode()).split() == ["pytest", "ended", "with", "exit", "code", "5"]
