"""A finding of `proctor doctor` about one thing, and the advice for it."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """`missing`: the local stack cannot run without it; `warning`: one of its features will not work."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    severity: Severity
    message: str
    advice: str = ""


def fine(name: str, message: str) -> Finding:
    return Finding(name, Severity.OK, message)


def warning(name: str, message: str, advice: str) -> Finding:
    return Finding(name, Severity.WARNING, message, advice)


def missing(name: str, message: str, advice: str) -> Finding:
    return Finding(name, Severity.MISSING, message, advice)
