"""Tests that ran are compared with those of the solution by their names, or else by their number."""

import pytest

from proctor.values.rollout import RanTests
from services.worker.verification.pytest_results import read_results
from services.worker.verification.ran_tests import (
    fewer_results,
    in_step,
    of_step,
    other_tests,
    other_uses,
    ran_tests,
    together,
)
from services.worker.verification.runs.other_runners import results_of_others

SOLVED = ran_tests(["t.py::a", "t.py::b[1]", "t.py::b[2]"])
OTHERS = {
    "the same": (ran_tests(["t.py::b[x]", "t.py::b[y]", "t.py::a"]), ()),
    "one of two": (
        ran_tests(["t.py::a", "t.py::b[1]"]),
        ("1 of 3 tests that ran on the task's solution did not run: t.py::b",),
    ),
    "another": (
        ran_tests(["t.py::a", "t.py::b", "t.py::c"]),
        (
            "1 of 3 tests that ran on the task's solution did not run: t.py::b",
            "1 test ran that did not run on the task's solution: t.py::c",
        ),
    ),
    "as many, without names": (RanTests(3), ()),
    "fewer, without names": (RanTests(2), ("2 tests ran, but 3 on the task's solution",)),
    "none that are known": (
        RanTests(),
        ("no result of a test was printed, but 3 tests ran on the task's solution",),
    ),
}


@pytest.mark.parametrize("way", OTHERS)
def test_other_tests_than_those_of_the_solution_are_named(way: str) -> None:
    ran, suspicions = OTHERS[way]
    assert tuple(other_tests(ran, SOLVED)) == suspicions
    assert tuple(other_tests(ran, RanTests())) == ()


def test_many_names_are_counted_only() -> None:
    assert ran_tests(f"t.py::test_{number}" for number in range(1001)) == RanTests(1001)
    assert ran_tests(["t.py::" + "x" * 70_000]) == RanTests(1)


def test_tests_of_a_step_are_found_again() -> None:
    first, second = ran_tests(["t.py::a"]), ran_tests(["t.py::a", "t.py::b"])
    whole = together([in_step("one", first), in_step("two", second)])
    assert (whole.count, of_step("one", whole), of_step("two", whole)) == (3, first, second)
    assert together([first, RanTests(2)]) == RanTests(3)


def test_uses_of_the_reward_are_added_where_all_are_known() -> None:
    known = [RanTests(1, reward_uses=3), RanTests(reward_uses=4)]
    assert together(known) == RanTests(1, reward_uses=7)
    assert together([*known, RanTests(1)]) == RanTests(2)


@pytest.mark.parametrize("uses", [None, 0, 3, 4])
def test_other_uses_of_the_reward_than_on_the_solution_are_suspicious(uses: int | None) -> None:
    assert bool(tuple(other_uses(uses, RanTests(reward_uses=3)))) is (uses in (0, 4))
    assert tuple(other_uses(uses, RanTests(1))) == ()


LOGS = {
    "-rA": "= short test summary info =\nPASSED ../t.py::a[x - y]\nSKIPPED [1] t.py:3: no\n"
    "FAILED ../t.py::b - x\n",
    "-v": "../t.py::a[x - y] PASSED [ 50%]\n../t.py::s SKIPPED (no) [60%]\n../t.py::b FAILED [100%]\n",
}


@pytest.mark.parametrize("form", LOGS)
def test_tests_that_ran_are_read_with_their_names(form: str) -> None:
    results = read_results(LOGS[form])
    assert results is not None
    assert results.ran == RanTests(2, ("../t.py::a", "../t.py::b"), failed=1)


def test_tests_that_were_counted_have_no_names() -> None:
    results = read_results("t.py ..s.\n=== 3 passed, 1 skipped in 0.1s ===\n")
    assert results is not None
    assert results.ran == RanTests(3)


OF_OTHERS = {
    "TAP": "TAP version 13\nok 1 - a\nnot ok 2 - b\n1..2\n# pass 1\n",
    "node": "✔ a (0.5ms)\n✖ b (0.1ms)\nℹ tests 2\n",
    "mocha": "  a\n    ✓ one\n    1) two\n\n  1 passing (5ms)\n  1 failing\n",
    "jest": "PASS ./a.test.js\nTests:       1 failed, 1 passed, 2 total\nTime: 1 s\n",
    "vitest": " Test Files  1 passed (1)\n      Tests  1 failed | 1 passed (2)\n",
    "go": "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n",
    "cargo": "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n",
    "unittest": "..\n----\nRan 2 tests in 0.001s\n\nOK\n",
    "Maven": "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n",
    "rspec": "2 examples, 0 failures\n",
    "CTest": "100% tests passed, 0 tests failed out of 2\n",
    "PHPUnit": "OK (2 tests, 5 assertions)\n",
    "words of a script": "[PASS] the file is there\n\x1b[31mFAIL: its sum is right\x1b[0m\n",
}


@pytest.mark.parametrize("runner", OF_OTHERS)
def test_results_of_other_runners_are_counted(runner: str) -> None:
    assert results_of_others(OF_OTHERS[runner]) == 2


def test_lines_without_results_are_not_counted() -> None:
    assert results_of_others("build ok\n 3 files passed on\nokay 1\nTests are in /tests\n") == 0


@pytest.mark.parametrize("results", [0, 1, 2, 3])
def test_fewer_results_than_on_the_solution_are_suspicious(results: int) -> None:
    """More are those of tests that an agent has added."""
    found = tuple(fewer_results(RanTests(other_results=results), RanTests(other_results=2)))
    said = (f"{results} results of tests were printed, but 2 on the task's solution",)
    assert found == (said if results < 2 else ())


def test_results_of_other_runners_are_added() -> None:
    assert together([RanTests(other_results=2), RanTests(other_results=3)]) == RanTests(other_results=5)
