"""Tests that run in forked processes are reported as in one, and a process that ends costs one test."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
import os, pytest
from tests.harness.forks.workers import ForkedWorkers

def pytest_configure(config):
    config.pluginmanager.register(ForkedWorkers(2, before_forks=lambda items: None))

@pytest.fixture(scope="session")
def stack():
    yield
    print("the stack of", os.getpid(), "is down")
"""
DEADLY = """
import os

def test_before():
    pass

def test_that_ends_its_process():
    os._exit(7)

def test_after():
    pass
"""
FAILING = """
import pytest

def test_that_fails():
    print("what it printed")
    assert {"a": 1} == {"a": 2}

@pytest.mark.skip(reason="a reason")
def test_that_is_skipped():
    pass
"""
SHARING = """
def test_something(stack):
    pass
"""


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What was printed, and the JUnit file."""
    folder = tmp_path_factory.mktemp("files")
    texts = {"deadly": DEADLY, "failing": FAILING, **{f"sharing_{n}": SHARING for n in range(3)}}
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    junit = folder / "report.xml"
    options = ("-rA", "-p", "no:cacheprovider", f"--junitxml={junit}", str(folder))
    command = (sys.executable, "-m", "pytest", *options)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1, ended.stdout
    return ended.stdout, junit


def test_what_fails_is_shown_with_its_reason_and_output(reported: tuple[str, Path]) -> None:
    shown, _ = reported
    assert "2 failed, 5 passed, 1 skipped" in shown
    assert "{'a': 1} != {'a': 2}" in shown
    assert "what it printed" in shown
    assert "a reason" in shown


def test_process_that_ends_costs_one_test(reported: tuple[str, Path]) -> None:
    shown, _ = reported
    assert "its process ended with 7" in shown
    assert "PASSED" in next(line for line in shown.splitlines() if line.endswith("::test_after"))


def test_each_file_has_fixtures_of_the_session_of_its_own(reported: tuple[str, Path]) -> None:
    shown, _ = reported
    assert shown.count("is down") == 3


def test_junit_file_has_every_test_once(reported: tuple[str, Path]) -> None:
    cases = [(case.get("classname"), case.get("name")) for case in ET.parse(reported[1]).iter("testcase")]
    assert len(cases) == len(set(cases)) == 8
