"""What a form of export is: how a file begins, how lines or outcomes become bytes, how it ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from services.results.exports.exported_lines import LineKind
from services.results.exports.exported_run import ExportedRun
from services.results.outcomes.outcome import ListedOutcome


class LineWriter(Protocol):
    """Writes one file of whole lines, each an object of JSON."""

    def begin(self) -> bytes: ...

    def write(self, lines: bytes) -> bytes: ...

    def end(self) -> bytes: ...


class OutcomeWriter(Protocol):
    """Writes one file of outcomes beside their samples."""

    def write(self, outcomes: Sequence[ListedOutcome]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class LineForm:
    """`lines`: what the file shows of each sample; None: only figures. `has_figures`: it shows the summary.

    `is_resumable`: its writer keeps nothing from one piece to the next, so that the file can be
    begun in its middle.
    """

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], LineWriter]
    lines: LineKind | None = LineKind.OUTCOME
    has_figures: bool = False
    is_resumable: bool = False
    is_of_one_task: bool = False


@dataclass(frozen=True, slots=True)
class OutcomeForm:
    """A form of one task that needs more of it than its lines."""

    suffix: str
    media_type: str
    open: Callable[[ExportedRun], OutcomeWriter]
    is_of_one_task: bool = True


ExportForm = LineForm | OutcomeForm
