"""A place in the file of a closed run from which it can be made without what comes before."""

from dataclasses import dataclass

from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey


@dataclass(frozen=True, slots=True)
class FileMark:
    """`first_byte`: bytes of the file up to and with the outcome `after`. `is_end`: it has no more."""

    first_byte: int = 0
    after: OutcomeKey = BEFORE_ALL
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file that stays as it is: the run, its epoch, and the tag of the content."""

    run_id: str
    epoch: int
    tag: str


@dataclass(frozen=True, slots=True)
class FilePiece:
    """Bytes of a file and the mark behind them."""

    data: bytes
    mark: FileMark
