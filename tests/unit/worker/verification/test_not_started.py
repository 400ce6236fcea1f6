"""Only what keeps tests from starting is a reason for no score: the rest is the agent's."""

import pytest

from services.worker.verification.not_started import not_started
from services.worker.verification.printed import plain_lines
from services.worker.verification.verifier_result import ScriptResult, VerifierResult

REASONS = [
    "test.sh: line 3: uvx: command not found",
    "sh: 1: pytest: not found",
    "/tests/test.sh: line 9: kotlinc: command not found\nbuild failed (status 127)",
    "bash: python3.13: command not found",
    "__main__.py: error: unrecognized arguments: --ctrf",
    "pytest: error: unrecognized arguments: --ctrf",
    "/usr/bin/python3: No module named pytest",
    "E       fixture 'benchmark' not found\n1 error in 0.01s",
    "async def functions are not natively supported.\n1 passed, 1 failed in 0.01s",
    "===== no tests ran in 0.00s =====",
    "curl: (6) Could not resolve host: example.org",
    "Failed to establish a new connection: [Errno -2] Name or service not known",
    "fatal: Temporary failure in name resolution",
    "\x1b[31mERROR: not found: t.py::test_a\x1b[0m",
    "pytest: error: argument -n/--numprocesses: invalid value",
    "ERROR: Missing required plugins: pytest-xdist",
    "[12:00:01] sh: 1: pytest: not found\r",
    "env: ‘python3.13’: No such file or directory",
    "collected 0 items\r\n",
    "Ran 0 tests in 0.000s",
    "ERROR: Could not find a version that satisfies the requirement pandas (from versions: none)",
    "pip: pandas cannot be installed: a sandbox has no network\n1 error in 0.10s",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "System has not been booted with systemd as init system (PID 1). Can't operate.",
    "test.sh: line 2: $'\\r': command not found",
    "python3: can't open file '/tests/test_state.py': [Errno 2] No such file or directory",
]
UNNAMED = [
    "test.sh: line 3: makewords: command not found",
    "E   ModuleNotFoundError: No module named 'pandas'\n=== 1 error in 0.10s ===",
]
RESULTS = [
    "test.sh: line 3: mytool: command not found",
    "sh: 1: apt-get: not found",
    "mytool: error: unrecognized arguments: --fast\n1 failed in 0.10s",
    "mytool.py: error: unrecognized arguments: --fast",
    "Failed to establish a new connection: [Errno 111] Connection refused",
    "__main__.py: error: unrecognized arguments: --fast\n1 failed in 0.10s",
    "fixture 'answer' not found\n1 passed, 1 error in 0.10s",
    "uvx: command not found\n2 failed, 1 passed in 0.10s",
    "Could not resolve host: db\n1 failed in 0.10s",
    "",
]


@pytest.mark.parametrize("log", REASONS)
def test_what_keeps_tests_from_starting_is_found(log: str) -> None:
    assert not_started(VerifierResult(0.0, "", log)) == plain_lines(log)[0].strip()


@pytest.mark.parametrize("log", UNNAMED)
def test_a_program_or_module_that_the_task_names_may_be_the_work_of_the_agent(log: str) -> None:
    result = VerifierResult(0.0, "", log)
    assert not_started(result, lambda _: False) == log.splitlines()[0]
    assert not_started(result, {"makewords", "pandas"}.__contains__) == ""


def test_a_module_that_tests_miss_while_they_run_is_a_failure() -> None:
    log = "E   ModuleNotFoundError: No module named 'pandas'\n=== 1 failed in 0.10s ==="
    assert not_started(VerifierResult(0.0, "", log), lambda _: False) == ""


@pytest.mark.parametrize("log", RESULTS)
def test_the_output_of_tests_that_ran_is_no_reason(log: str) -> None:
    assert not_started(VerifierResult(0.0, "", log)) == ""


@pytest.mark.parametrize("log", REASONS)
def test_a_part_of_the_score_is_kept(log: str) -> None:
    assert not_started(VerifierResult(0.25, "", log)) == ""


def test_the_count_of_a_script_is_not_the_tests_own() -> None:
    """It counts an error as a failure."""
    output = "0 passed, 1 failed\nE       fixture 'benchmark' not found\n1 error in 0.01s"
    script = ScriptResult("tests/test_it.py", is_passed=False, output=output)
    result = VerifierResult(0.0, "", f"=== {script.path}: {output}", scripts=(script,))
    assert not_started(result) == "E       fixture 'benchmark' not found"
