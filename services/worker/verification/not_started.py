"""Finds in what tests printed why they could not start: then a reward of 0 says nothing about the files."""

import re

from services.worker.verification.verifier_result import VerifierResult

# A usage error of pytest, no test at all, or a plugin that is missing.
_OF_PYTEST = re.compile(
    r"error: unrecognized arguments: |ERROR: file or directory not found: |No module named '?pytest"
    r"|Error importing plugin |\bno tests ran in |^=*\s*\d+ deselected in |fixture '\w+' not found"
    r"|async def functions are not natively supported"
)
_NOT_FOUND = re.compile(r"(?:^|[:\s])(?P<program>[\w.+-]+): (?:command )?not found\s*$")
_NO_NETWORK = re.compile(
    r"Could not resolve host|Temporary failure in name resolution|Temporary failure resolving"
    r"|Failed to establish a new connection|dns error|a sandbox has no network",
    re.IGNORECASE,
)
# Tests install by these what may be there already, and go on without them.
_PREPARING = frozenset(
    {"sudo", "apt", "apt-get", "apk", "yum", "dnf", "curl", "wget", "git", "locale-gen", "service", "clear"}
)
_RAN = re.compile(r"\b\d+ (passed|failed|errors?)\b")
_MAX_LINE_CHARACTERS = 300


def not_started(result: VerifierResult) -> str:
    """The line that says why tests could not start; empty where they passed or there is none."""
    if result.score >= 1.0:
        return ""
    ran = _RAN.search(result.log) is not None
    for line in result.log.splitlines():
        shown = line.strip()[:_MAX_LINE_CHARACTERS]
        if _OF_PYTEST.search(shown) or (not ran and _could_not_begin(shown)):
            return shown
    return ""


def _could_not_begin(line: str) -> bool:
    missing = _NOT_FOUND.search(line)
    return bool(_NO_NETWORK.search(line)) or bool(missing and missing["program"] not in _PREPARING)
