"""What a form of export is: how a file begins, how outcomes become bytes, how it ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.results.exports.exported_run import ExportedRun
from services.results.outcomes.listed_outcome import ListedOutcome


class FileWriter(Protocol):
    """Writes one file, from its beginning to its end."""

    def begin(self) -> bytes: ...

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes: ...

    def end(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class ExportForm:
    """`has_outcomes`: the file shows each outcome, not only figures; `has_docs`: with the row it is from."""

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], FileWriter]
    has_outcomes: bool = True
    has_docs: bool = False
    is_of_one_task: bool = False
