"""Answers of a run, one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.terminal import say
from proctor.client_errors import Refused
from proctor.v1 import outcome_pb2, results_service_pb2

_STATUSES: Mapping[str, outcome_pb2.OutcomeStatus.ValueType] = {
    "": outcome_pb2.OUTCOME_STATUS_UNSPECIFIED,
    "scored": outcome_pb2.OUTCOME_STATUS_SCORED,
    "unparsed": outcome_pb2.OUTCOME_STATUS_UNPARSED,
    "failed": outcome_pb2.OUTCOME_STATUS_FAILED,
}
_TEXT_LIMIT = 160


@dataclass(frozen=True, slots=True)
class OutcomeChoice:
    task: str
    status: str
    limit: int
    page: str
    filter: results_service_pb2.OutcomeFilter


def outcome_status(word: str) -> outcome_pb2.OutcomeStatus.ValueType:
    if word not in _STATUSES:
        raise Refused(f"--status {word}: it must be scored, unparsed or failed.", "INVALID_PARAMETER")
    return _STATUSES[word]


def print_outcomes(console: Console, outcomes: Sequence[outcome_pb2.RecordedOutcome], next_page: str) -> None:
    if not outcomes and not next_page:
        say(console, "There are no such answers.")
        return
    table = Table(show_lines=True)
    # Rows of a data set have ids of their own, and are all of one task.
    has_ids = any(recorded.row_id for recorded in outcomes)
    for column in ("sample", "row" if has_ids else "task", "prompt", "expected", "answer", "scores"):
        table.add_column(column, overflow="fold")
    for recorded in outcomes:
        table.add_row(*_cells(recorded))
    console.print(table)
    if next_page:
        say(console, f"The next page: --page {next_page}", style="dim")


def _cells(recorded: outcome_pb2.RecordedOutcome) -> tuple[Text, ...]:
    outcome = recorded.outcome
    number = f"{outcome.sample}" if not outcome.rollout else f"{outcome.sample} #{outcome.rollout + 1}"
    number += " golden" if recorded.is_golden else ""
    scores = ", ".join(f"{name} {value:g}" for name, value in sorted(recorded.scores.items()))
    return (
        Text(number),
        Text(recorded.row_id or recorded.task),
        Text(shortened(recorded.prompt)),
        Text(shortened(recorded.target)),
        _answer(recorded),
        Text(scores),
    )


def _answer(recorded: outcome_pb2.RecordedOutcome) -> Text:
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        return Text(failure_words(recorded.outcome.failure), "red")
    said = shortened_answer(recorded.outcome.answer.text or recorded.prediction)
    return Text(f"{said} (unparsed)" if recorded.status == outcome_pb2.OUTCOME_STATUS_UNPARSED else said)


def failure_words(failure: outcome_pb2.Failure) -> str:
    word = outcome_pb2.FailureClass.Name(failure.failure_class).removeprefix("FAILURE_CLASS_").lower()
    return f"{word.replace('_', ' ')}: {failure.message}"


def shortened(text: str) -> str:
    """The end of a long text: that is where the question stands."""
    return text if len(text) <= _TEXT_LIMIT else f"…{text[-_TEXT_LIMIT:]}"


def shortened_answer(text: str) -> str:
    """Both ends of a long one: what it says at once, and what it comes to."""
    half = _TEXT_LIMIT // 2
    return text if len(text) <= _TEXT_LIMIT else f"{text[:half]} … {text[-half:]}"
