"""Options that choose among answers, and the filter that they stand for.
Answers of a run, one by one.
Commands about runs that exist: `runs`, `runs delete`, `results`, `cancel`, `retry`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway, Page, RunId
from proctor.cli.render.documents import Json, document
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.cli.results.figures import figures_so_far, print_summary
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import outcome_pb2, results_service_pb2

_MOST = 2**31 - 1

RowPart = Annotated[str, typer.Option("--id", metavar="PART", help="Only rows whose id has this part.")]
TextPart = Annotated[
    str, typer.Option("--text", metavar="PART", help="Only where the prompt or the answer has this part.")
]
OfMetric = Annotated[str, typer.Option(help="What --min-score and --max-score are about; else the main one.")]
MinScore = Annotated[float | None, typer.Option(help="Only answers that score at least so much.")]
MaxScore = Annotated[float | None, typer.Option(help="Only answers that score at most so much.")]
MinLength = Annotated[
    int | None, typer.Option(min=0, max=_MOST, help="Only answers of at least so many characters.")
]
MaxLength = Annotated[int | None, typer.Option(min=0, max=_MOST, help="Only answers of at most so many.")]
OnlyGolden = Annotated[bool, typer.Option("--golden", help="Only answers that were marked as golden.")]


def is_set(chosen: results_service_pb2.OutcomeFilter) -> bool:
    return bool(chosen.ListFields())


def refuse_empty_range(chosen: results_service_pb2.OutcomeFilter) -> None:
    """In the words of the options; the service would name the fields of its contract."""
    if chosen.HasField("max_characters") and chosen.min_characters > chosen.max_characters:
        raise Refused(
            f"--min-length {chosen.min_characters} is above --max-length {chosen.max_characters}.",
            "INVALID_PARAMETER",
        )
    if chosen.HasField("min_score") and chosen.HasField("max_score") and chosen.min_score > chosen.max_score:
        raise Refused(
            f"--min-score {chosen.min_score:g} is above --max-score {chosen.max_score:g}.",
            "INVALID_PARAMETER",
        )


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


def results(
    *,
    run_id: RunId,
    outcomes: Annotated[bool, typer.Option("--outcomes", help="Also list answers, one by one.")] = False,
    task: Annotated[str, typer.Option(help="Only answers of this task.")] = "",
    status: Annotated[str, typer.Option(help="Only scored, unparsed or failed ones.")] = "",
    row_id: RowPart = "",
    text: TextPart = "",
    metric: OfMetric = "",
    min_score: MinScore = None,
    max_score: MaxScore = None,
    min_length: MinLength = None,
    max_length: MaxLength = None,
    golden: OnlyGolden = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Answers per page.")] = 20,
    page: Page = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Show the figures of a run, partial while it runs; with --outcomes or a filter what the model said."""
    terminal = Terminal(as_json)
    wanted = results_service_pb2.OutcomeFilter(
        row_id=row_id,
        text=text,
        metric=metric,
        min_score=min_score,
        max_score=max_score,
        min_characters=min_length,
        max_characters=max_length,
        is_golden=golden,
    )
    is_about_answers = outcomes or task or status or page or is_set(wanted)
    chosen = OutcomeChoice(task, status, limit, page, wanted) if is_about_answers else None

    async def work() -> ExitCode:
        async with ProctorClient(find_gateway(gateway)) as client:
            await _show_results(client, run_id, terminal, chosen)
        return ExitCode.OK

    execute(terminal, work)


async def _show_results(
    client: ProctorClient, run_id: str, terminal: Terminal, chosen: OutcomeChoice | None
) -> None:
    if chosen:
        refuse_empty_range(chosen.filter)
    run = await client.get_run(run_id)
    summary = await figures_so_far(client, run_id)
    page = None
    if chosen:
        request = results_service_pb2.ListOutcomesRequest(
            run_id=run_id,
            page_size=chosen.limit,
            page_token=chosen.page,
            task=chosen.task,
            status=outcome_status(chosen.status),
            filter=chosen.filter if is_set(chosen.filter) else None,
        )
        page = await _filled_page(client, request)
    if terminal.is_json:
        shown: dict[str, Json] = {"run": document(run), "summary": document(summary)}
        if page:
            shown |= {"outcomes": [document(item) for item in page[0]], "next_page_token": page[1]}
        terminal.emit(shown)
        return
    print_summary(terminal.out, run, summary)
    if page:
        print_outcomes(terminal.out, *page)


async def _filled_page(
    client: ProctorClient, request: results_service_pb2.ListOutcomesRequest
) -> tuple[list[outcome_pb2.RecordedOutcome], str]:
    """A server looks through many answers in several calls, and few of them may match."""
    most, found = request.page_size, list[outcome_pb2.RecordedOutcome]()
    while True:
        listed, request.page_token = await client.list_outcomes(request)
        found += listed
        if not request.page_token or len(found) >= most:
            return found, request.page_token
        request.page_size = most - len(found)
