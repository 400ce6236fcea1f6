"""Versions of suites where runs are looked for: boards, histories and comparisons are of a whole suite."""

from services.gateway.errors import SuiteVersionNamed


def of_all_versions(suite: str) -> str:
    """The name as it is; runs of other versions stand beside each other, and each says its own."""
    name, mark, _ = suite.partition("@")
    if mark:
        raise SuiteVersionNamed(field="suite", given=suite, suite=name)
    return suite
