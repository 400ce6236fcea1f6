"""Answers of several runs below each other: one block per row, one line per run."""

from collections.abc import Sequence
from string import ascii_uppercase

from rich.console import Console
from rich.text import Text

from proctor.cli.outcomes_table import failure_words, shortened, shortened_answer
from proctor.cli.terminal import say
from proctor.cli.verbatim import quoted, write_verbatim
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2


def print_side_by_side(
    console: Console, runs: Sequence[run_pb2.Run], rows: Sequence[answer_pb2.SideBySideRow], next_page: str
) -> None:
    for letter, run in zip(ascii_uppercase, runs, strict=False):
        say(console, Text.assemble((f"{letter}  {run.order.model}", "bold"), (f"  run {run.run_id}", "dim")))
    for row in rows:
        _print_row(console, row)
    if not rows:
        say(console, "No row is like that.", style="dim")
    if next_page:
        say(console, f"The next page: --page {next_page}", style="dim")


def _print_row(console: Console, row: answer_pb2.SideBySideRow) -> None:
    console.rule(row.row_id or f"row {row.doc_id}", align="left", style="dim")
    write_verbatim(console, shortened(row.prompt))
    if row.target:
        say(console, Text.assemble(("expected  ", "bold"), quoted(row.target)))
    for letter, answer in zip(ascii_uppercase, row.answers, strict=False):
        mark = "*" if answer.outcome.is_golden else " "
        style = "yellow" if row.is_differing else ""
        say(console, Text.assemble((f"{letter}{mark} ", style), _said(answer)))


def _said(answer: answer_pb2.SideBySideAnswer) -> Text:
    recorded = answer.outcome
    if not answer.HasField("outcome"):
        return Text("no answer yet", "dim")
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        return Text(failure_words(recorded.outcome.failure), "red")
    scores = ", ".join(f"{name} {value:g}" for name, value in sorted(recorded.scores.items()))
    said = quoted(shortened_answer(recorded.outcome.answer.text or recorded.prediction))
    return Text.assemble(said, (f"  {scores}", "dim") if scores else "")
