"""Marks of users on answers, and which golden one of several to a row counts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from proctor.values.row_fields import MAX_ROW_ID_CHARACTERS
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey, ScoredOutcome
from services.results.runs.run_plan import PlannedTask
from services.results.samples.sample import StoredSample


class Mark(StrEnum):
    """A user's mark of an answer; an answer has one mark at most. Marks change no score."""

    GOLDEN = "golden"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class MarkCounts:
    """How many answers of a run have each mark."""

    golden: int
    wrong: int


@dataclass(frozen=True, slots=True)
class GoldenAnswer:
    """`name`: the id of the row, else its place in its split. The same digest and name are the same row."""

    key: OutcomeKey
    marked_at: datetime
    digest: bytes
    name: str


@dataclass(frozen=True, slots=True)
class MarkChange:
    """An answer that was marked, or whose mark was removed (None); later changes have higher numbers."""

    number: int
    key: OutcomeKey
    mark: Mark | None
    user: str
    at: datetime


@dataclass(frozen=True, slots=True)
class MarkedVerdict:
    """A judge's verdict on an answer of the judged run, 0 to 1, with the answer's mark."""

    key: OutcomeKey
    verdict: float
    mark: Mark | None


def listed_outcome(
    task: PlannedTask, sample: StoredSample, scored: ScoredOutcome, marks: Mapping[OutcomeKey, Mark]
) -> ListedOutcome:
    """An outcome beside its sample, with its mark where it has one."""
    mark = marks.get(scored.key[1:])
    return ListedOutcome(task, sample, scored, mark is Mark.GOLDEN, mark is Mark.WRONG)


@dataclass(frozen=True, slots=True)
class ChosenAnswer:
    """`run`: index of the run in the requested list. `row_id` is unique over the file."""

    run: int
    key: OutcomeKey
    row_id: str


def latest_golden_answers(answers: Iterable[tuple[int, GoldenAnswer]]) -> list[ChosenAnswer]:
    """One answer per row, the one that was marked last, in the order given; each with an id of its own."""
    latest: dict[tuple[bytes, str], tuple[int, GoldenAnswer]] = {}
    for run, answer in answers:
        row = answer.digest, answer.name
        known = latest.get(row)
        if known is None or answer.marked_at >= known[1].marked_at:
            latest[row] = run, answer
    chosen = sorted(latest.values(), key=lambda one: (one[0], one[1].key))
    ids = _unique([answer.name for _, answer in chosen])
    return [ChosenAnswer(run, answer.key, row_id) for (run, answer), row_id in zip(chosen, ids, strict=True)]


def _unique(names: Sequence[str]) -> list[str]:
    """The first row of a name keeps it; others get the first number behind it that makes a new one."""
    taken = set(names)
    given: set[str] = set()
    # The first number to try for each name: many rows may have the same name.
    numbers: dict[str, int] = {}
    ids = []
    for name in names:
        row_id = name
        if name in given:
            number = numbers.get(name, 2)
            while (row_id := _numbered(name, number)) in taken:
                number += 1
            numbers[name] = number + 1
            taken.add(row_id)
        given.add(row_id)
        ids.append(row_id)
    return ids


def _numbered(name: str, number: int) -> str:
    tail = f"-{number}"
    return name[: MAX_ROW_ID_CHARACTERS - len(tail)] + tail
