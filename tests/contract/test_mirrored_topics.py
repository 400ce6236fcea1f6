"""Folders of tests have the names of the folders that they test; each topic of a service has unit tests."""

import pytest

from tests.contract.test_code_budgets import ROOT

# Topics without unit tests, and what tests them instead.
TESTED_ELSEWHERE = {
    "gateway": {"backends": "channels to real servers: tests/integration/gateway/test_backend_replicas.py"},
    "results": {
        "processes": "real processes: tests/integration/results/test_bounded_calls.py",
        "rescoring": "over gRPC: tests/integration/results/test_rescoring.py",
    },
    "scheduler": {"limits": "in the transaction: tests/integration/scheduler/test_queue_limits.py"},
    "worker": {},
}
# It connects topics and is none.
WIRING_ONLY = {"topics"}


@pytest.mark.parametrize("service", sorted(TESTED_ELSEWHERE))
def test_unit_tests_mirror_the_topics_of_a_service(service: str) -> None:
    files = (ROOT / "services" / service).rglob("*.py")
    topics = {path.relative_to(ROOT).parts[2] for path in files if len(path.relative_to(ROOT).parts) > 3}
    folders = [path for path in (ROOT / "tests/unit" / service).iterdir() if path.is_dir()]
    tested = {path.name for path in folders if any(path.rglob("test_*.py"))}
    assert topics - tested - WIRING_ONLY == set(TESTED_ELSEWHERE[service])
    assert tested - topics == set()


def test_what_tests_a_topic_elsewhere_is_there() -> None:
    named = [reason.rpartition(" ")[2] for topics in TESTED_ELSEWHERE.values() for reason in topics.values()]
    assert [path for path in named if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("service", sorted(TESTED_ELSEWHERE))
@pytest.mark.parametrize("kind", ["unit", "integration", "contract"])
def test_every_folder_with_tests_of_a_service_is_a_folder_of_that_service(kind: str, service: str) -> None:
    tests = ROOT / "tests" / kind
    folders = {path.parent.relative_to(tests) for path in (tests / service).rglob("test_*.py")}
    assert folders, "a service has tests of each kind"
    assert [str(folder) for folder in folders if not (ROOT / "services" / folder).is_dir()] == []
