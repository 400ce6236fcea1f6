"""`proctor results` and `proctor side-by-side`: the figures of a run, and answers of one or several runs."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.options import PageOption, RunIdArgument
from proctor.cli.render.terminal import quoted, say, write_verbatim
from proctor.cli.render.words import JsonValue, document, option_value
from proctor.cli.results.figures import figures_so_far, print_summary
from proctor.cli.results.judged import judged_run
from proctor.client.errors import Refused
from proctor.client.pages import full_page
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, run_pb2
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from proctor.values.plain import INT32_MAX
from proctor.wire.enums import word_of
from proctor.wire.rollout_orders import answering_model
from proctor.wire.well_known import unless_empty

_TEXT_LIMIT = 160


@dataclass(frozen=True, slots=True)
class OutcomeOptions:
    """Filter of outcomes: each field is an option of both commands."""

    row_id: Annotated[str, typer.Option("--id", metavar="PART", help="Only rows whose id contains PART.")] = (
        ""
    )
    text: Annotated[
        str, typer.Option("--text", metavar="PART", help="Only rows whose prompt or answer contains PART.")
    ] = ""
    metric: Annotated[
        str,
        typer.Option(
            help="Metric of --min-score and --max-score; default: the task's first per-sample metric."
        ),
    ] = ""
    min_score: Annotated[float | None, typer.Option(help="Lowest score of an answer.")] = None
    max_score: Annotated[float | None, typer.Option(help="Highest score of an answer.")] = None
    min_characters: Annotated[
        int | None, typer.Option(min=0, max=INT32_MAX, help="Minimum number of characters of an answer.")
    ] = None
    max_characters: Annotated[
        int | None, typer.Option(min=0, max=INT32_MAX, help="Maximum number of characters of an answer.")
    ] = None
    is_golden: Annotated[bool, typer.Option("--golden", help="Only answers marked as golden.")] = False
    is_marked_wrong: Annotated[bool, typer.Option("--wrong", help="Only answers marked as wrong.")] = False

    def message(self) -> results_pb2.OutcomeFilter | None:
        """None for a filter that lets everything through.

        An empty range is refused here with the options' names; the service would name its contract's fields.
        """
        if self.max_characters is not None and (self.min_characters or 0) > self.max_characters:
            raise Refused(
                f"--min-characters {self.min_characters} is above --max-characters {self.max_characters}."
            )
        if self.min_score is not None and self.max_score is not None and self.min_score > self.max_score:
            raise Refused(f"--min-score {self.min_score:g} is above --max-score {self.max_score:g}.")
        if self.is_golden and self.is_marked_wrong:
            raise Refused("--golden and --wrong exclude each other: an answer has one mark at most.")
        return unless_empty(results_pb2.OutcomeFilter(**asdict(self)))


@dataclass(frozen=True, slots=True)
class ResultsOptions:
    """Which outcomes of a run are listed below its figures."""

    outcomes: Annotated[bool, typer.Option("--outcomes", help="Also list outcomes, one by one.")] = False
    task: Annotated[str, typer.Option(help="Only outcomes of this task.")] = ""
    status: Annotated[str, typer.Option(help="Only scored, unparsed or failed ones.")] = ""
    page_size: Annotated[int, typer.Option(min=1, max=1000, help="Outcomes per page.")] = 20
    page: PageOption = ""
    sort: Annotated[
        str,
        typer.Option(
            help="Order by score, length, time or disagreement of judges and people, the smallest first."
        ),
    ] = ""
    descending: Annotated[bool, typer.Option("--descending", help="The largest first.")] = False


async def results(
    session: Session, run_id: RunIdArgument, options: ResultsOptions, chosen: OutcomeOptions
) -> None:
    """Show the figures of a run, partial while it runs; with --outcomes or a filter also its outcomes."""
    request = results_pb2.ListOutcomesRequest(
        run_id=run_id,
        page_size=options.page_size,
        page_token=options.page,
        task=options.task,
        filter=chosen.message(),
        status=option_value(outcome_pb2.OutcomeStatus, options.status, "--status"),
        sort=option_value(results_pb2.OutcomeSort, options.sort, "--sort"),
        is_descending=options.descending,
        includes_verdicts=True,
    )
    is_filtered = options.task or options.status or options.sort or chosen != OutcomeOptions()
    has_answers = bool(options.outcomes or options.page or is_filtered)
    client, terminal = session.client, session.terminal
    run = await client.run(run_id)
    summary, judged = await asyncio.gather(figures_so_far(client, run_id), judged_run(client, run))
    found, next_page = list[outcome_pb2.RecordedOutcome](), ""
    if has_answers:
        found, next_page = await full_page(client.outcomes.ListOutcomes, request, lambda page: page.outcomes)
    if not terminal.is_json:
        print_summary(terminal.out, run, summary)
        for name, value in judged.facts():
            say(terminal.out, Text.assemble((f"{name}: ", "bold"), value))
        if has_answers:
            _print_outcomes(terminal.out, found, next_page, has_rollouts=run.order.rollouts > 1)
        return
    shown: dict[str, JsonValue] = {"run": document(run), "summary": document(summary), **judged.document()}
    if has_answers:
        shown |= {"outcomes": [document(each) for each in found], "next_page_token": next_page}
    terminal.emit(shown)


def _print_outcomes(
    console: Console,
    outcomes: Sequence[outcome_pb2.RecordedOutcome],
    next_page: str,
    *,
    has_rollouts: bool,
) -> None:
    if not outcomes and not next_page:
        say(console, "There are no such answers.")
        return
    made = Table(show_lines=True)
    # Rows of a data set have ids, and all of them are of one task.
    has_ids = any(recorded.row_id for recorded in outcomes)
    number, row = "sample #rollout" if has_rollouts else "sample", "row" if has_ids else "task"
    is_judged = any(recorded.verdicts for recorded in outcomes)
    verdicts = ("verdicts",) if is_judged else ()
    for column in (number, row, "prompt", "target", "answer", "scores", *verdicts):
        made.add_column(column, overflow="fold")
    for recorded in outcomes:
        cells = _cells(recorded, has_rollouts=has_rollouts)
        made.add_row(*cells, *((Text(_verdicts_text(recorded)),) if is_judged else ()))
    console.print(made)
    if next_page:
        say(console, f"The next page: --page {next_page}", style="dim")


def _cells(recorded: outcome_pb2.RecordedOutcome, *, has_rollouts: bool) -> tuple[Text, ...]:
    outcome = recorded.outcome
    number = f"{outcome.sample} #{outcome.rollout}" if has_rollouts else f"{outcome.sample}"
    return (
        Text(f"{number}{_mark(recorded)}"),
        Text(recorded.row_id or recorded.task),
        Text(shortened(recorded.prompt)),
        Text(shortened(recorded.target)),
        _answer(recorded),
        Text(scores_text(recorded)),
    )


def _mark(recorded: outcome_pb2.RecordedOutcome) -> str:
    return " golden" if recorded.is_golden else " marked wrong" if recorded.is_marked_wrong else ""


def _verdicts_text(recorded: outcome_pb2.RecordedOutcome) -> str:
    """A line for each verdict, with its reason."""
    return "\n".join(map(_verdict_line, recorded.verdicts))


def _verdict_line(one: outcome_pb2.AnswerVerdict) -> str:
    said = one.verdict or word_of(outcome_pb2.OutcomeStatus, one.status)
    people = (
        " (people say otherwise)" if one.HasField("agrees_with_people") and not one.agrees_with_people else ""
    )
    reason = f": {_both_ends(one.reason)}" if one.reason else ""
    return f"{said}{people}, {one.judge.model} {one.judge.prompt}{reason}"


def _answer(recorded: outcome_pb2.RecordedOutcome) -> Text:
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        return Text(failure_text(recorded.outcome.failure), "red")
    reasoning = recorded.outcome.answer.reasoning
    # In words: a file or a pipe has no styles.
    thought = (f"reasoning {_both_ends(reasoning)}\n", "dim italic") if reasoning else ""
    return Text.assemble(thought, answer_text(recorded), _unparsed(recorded))


def _unparsed(recorded: outcome_pb2.RecordedOutcome) -> str:
    """That nothing was read from the answer, and what ended it, which is often why."""
    if recorded.status != outcome_pb2.OUTCOME_STATUS_UNPARSED:
        return ""
    finish_reason = recorded.outcome.answer.finish_reason
    return f" (unparsed, ended by {finish_reason})" if finish_reason else " (unparsed)"


def scores_text(recorded: outcome_pb2.RecordedOutcome) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in sorted(recorded.scores.items()))


def failure_text(failure: outcome_pb2.Failure) -> str:
    word = word_of(outcome_pb2.FailureClass, failure.failure_class)
    return f"{word.replace('_', ' ')}: {failure.message}"


def shortened(text: str) -> str:
    """The end of a long prompt: the question is there."""
    return text if len(text) <= _TEXT_LIMIT else f"…{text[-_TEXT_LIMIT:]}"


def answer_text(recorded: outcome_pb2.RecordedOutcome) -> str:
    """Both ends of a long answer, without its reasoning."""
    return _both_ends(recorded.outcome.answer.text or recorded.prediction)


def _both_ends(text: str) -> str:
    half = _TEXT_LIMIT // 2
    return text if len(text) <= _TEXT_LIMIT else f"{text[:half]} … {text[-half:]}"


@dataclass(frozen=True, slots=True)
class SideBySideOptions:
    """Which rows of several runs are listed."""

    run_ids: Annotated[
        list[str], typer.Argument(metavar="RUN_ID", help=f"Ids of {MIN_COMPARED} to {MAX_COMPARED} runs.")
    ]
    task: Annotated[str, typer.Option(help="Task of the suite, if the runs have several.")] = ""
    differing: Annotated[bool, typer.Option("--differing", help="Only rows with different answers.")] = False
    page_size: Annotated[int, typer.Option(min=1, max=200, help="Rows per page.")] = 10
    page: PageOption = ""


async def side_by_side(session: Session, options: SideBySideOptions, chosen: OutcomeOptions) -> None:
    """Show the answers of several runs to the same rows, in the order of the first run."""
    if not MIN_COMPARED <= len(options.run_ids) <= MAX_COMPARED:
        raise Refused(f"Name {MIN_COMPARED} to {MAX_COMPARED} runs.")
    request = answer_pb2.ListSideBySideRequest(
        run_ids=options.run_ids,
        task=options.task,
        only_differing=options.differing,
        filter=chosen.message(),
        page_size=options.page_size,
        page_token=options.page,
    )
    runs = [await session.client.run(run_id) for run_id in options.run_ids]
    answers = session.client.answers
    rows, next_page = await full_page(answers.ListSideBySide, request, lambda page: page.rows)
    if session.terminal.is_json:
        session.terminal.emit({"rows": [document(row) for row in rows], "next_page_token": next_page})
    else:
        _print_rows(session.terminal.out, runs, rows, next_page)


def _print_rows(
    console: Console, runs: Sequence[run_pb2.Run], rows: Sequence[answer_pb2.SideBySideRow], next_page: str
) -> None:
    for letter, run in zip(ascii_uppercase, runs, strict=False):
        say(
            console,
            Text.assemble(
                (f"{letter}  {answering_model(run.order)}", "bold"), (f"  run {run.run_id}", "dim")
            ),
        )
    for row in rows:
        console.rule(row.row_id or f"row {row.doc_id}", align="left", style="dim")
        write_verbatim(console, shortened(row.prompt))
        if row.target:
            say(console, Text.assemble(("target  ", "bold"), quoted(row.target)))
        for letter, answer in zip(ascii_uppercase, row.answers, strict=False):
            mark = "*" if answer.outcome.is_golden else "x" if answer.outcome.is_marked_wrong else " "
            style = "yellow" if row.is_differing else ""
            say(console, Text.assemble((f"{letter}{mark} ", style), _answer_of_run(answer)))
    if not rows:
        say(console, "No row matches.", style="dim")
    if next_page:
        say(console, f"The next page: --page {next_page}", style="dim")


def _answer_of_run(answer: answer_pb2.SideBySideAnswer) -> Text:
    recorded = answer.outcome
    if not answer.HasField("outcome"):
        return Text("no answer yet", "dim")
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        return Text(failure_text(recorded.outcome.failure), "red")
    scores, reasoning = scores_text(recorded), recorded.outcome.answer.reasoning
    return Text.assemble(
        quoted(answer_text(recorded)),
        (f"  {scores}", "dim") if scores else "",
        (_unparsed(recorded), "dim"),
        (f"\n   reasoning {_both_ends(reasoning)}", "dim italic") if reasoning else "",
    )
