"""A judge that an order or a suite names for the answers of a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedJudge:
    """It judges by an installed `prompt`, or by a `document`."""

    model: str
    prompt: str = ""
    scale: str = ""
    document: str = ""
