"""What `proctor doctor` found out about one thing, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`missing`: without it there is no local stack; `warning`: something that is offered will not work."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    verdict: Severity
    says: str
    advice: str = ""


def fine(name: str, says: str) -> Finding:
    return Finding(name, Severity.OK, says)


def warning(name: str, says: str, advice: str) -> Finding:
    return Finding(name, Severity.WARNING, says, advice)


def missing(name: str, says: str, advice: str) -> Finding:
    return Finding(name, Severity.MISSING, says, advice)
