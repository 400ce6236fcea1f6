"""A comparison as a person reads it: who is compared, a table per pair, and what must be known to read it.
`proctor compare`: what two or more runs or models prove about each other.
"""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway_address import find_gateway
from proctor.cli.options import AsJson, Gateway
from proctor.cli.render.documents import document
from proctor.cli.render.table import compact_table
from proctor.cli.render.terminal import ExitCode, Terminal, execute, say
from proctor.cli.render.verbatim import quoted, write_verbatim
from proctor.cli.render.words import NONE, p_word, scoring_word
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.client.results import Compared
from proctor.v1 import comparison_pb2, run_pb2
from proctor.v1 import comparison_service_pb2 as comparing_pb2

_ALL_TASKS = "all tasks"
_VERDICT_STYLES = {
    comparison_pb2.VERDICT_FIRST_BETTER: "green",
    comparison_pb2.VERDICT_SECOND_BETTER: "green",
    comparison_pb2.VERDICT_UNDEFINED: "yellow",
}


def print_comparison(console: Console, comparison: comparison_pb2.Comparison) -> None:
    for place, run in enumerate(comparison.runs):
        say(console, f"{_letter(place)}  {run.model}", style="bold")
        say(console, f"   {_facts(run)}", style="dim")
    for pair in dict.fromkeys((each.first, each.second) for each in comparison.differences):
        of_pair = [each for each in comparison.differences if (each.first, each.second) == pair]
        console.print(_pair_table(console, of_pair))
        over_all = [each for each in of_pair if not each.task]
        for each in of_pair:
            for note in _notes(each, is_brief=bool(over_all and each.task)):
                say(console, f"{_where(each)}: {note}", style="dim")
    say(console, f"p is two-sided and corrected (Holm) over {comparison.corrected_over} tests.", style="dim")
    for warning in comparison.warnings:
        say(console, f"Note: {warning}", style="yellow")


def print_flips(
    console: Console, comparison: comparison_pb2.Comparison, flips: list[comparison_pb2.Flip]
) -> None:
    """One block per sample: prompts are long, and the end is where the question stands."""
    letters = [_letter(place) for place in range(len(comparison.runs))]
    for flip in flips:
        console.rule(f"{flip.task} row {flip.doc_id}", align="left", style="dim")
        write_verbatim(console, flip.prompt)
        say(console, Text.assemble(("expected  ", "bold"), quoted(flip.target)))
        answers = ((flip.first_prediction, flip.first_score), (flip.second_prediction, flip.second_score))
        for letter, (said, score) in zip(letters, answers, strict=True):
            style = "green" if score == max(flip.first_score, flip.second_score) else "red"
            say(console, Text.assemble((f"{letter} {score:<8.4g}", style), quoted(said)))


def _facts(run: comparison_pb2.ComparedRun) -> str:
    facts = [f"run {run.run_id}"]
    if run.scoring_method != run_pb2.SCORING_METHOD_UNSPECIFIED:
        facts.append(scoring_word(run.scoring_method))
    if run.HasField("limit"):
        facts.append(f"first {run.limit} rows of each task")
    facts.append(f"{run.score:.4f} on the whole suite" if run.HasField("score") else "no figure of the suite")
    return ", ".join(facts)


def _pair_table(console: Console, differences: list[comparison_pb2.Difference]) -> Table:
    first, second = _letter(differences[0].first), _letter(differences[0].second)
    table = compact_table(console)
    table.add_column("task", overflow="fold")
    table.add_column("metric", no_wrap=True)
    for column in (first, second, f"{first} − {second}", "95 % interval", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for each in sorted(differences, key=lambda each: not each.task):
        table.add_row(*_cells(each), style="bold" if not each.task else "")
    return table


def _cells(each: comparison_pb2.Difference) -> Iterator[str | Text]:
    yield each.task or _ALL_TASKS
    yield each.metric
    yield f"{each.first_mean:.4f}" if each.HasField("first_mean") else NONE
    yield f"{each.second_mean:.4f}" if each.HasField("second_mean") else NONE
    yield f"{each.difference:+z.4f}" if each.HasField("difference") else NONE
    has_interval = each.HasField("ci_low") and each.HasField("ci_high")
    yield f"{each.ci_low:+z.4f} to {each.ci_high:+z.4f}" if has_interval else NONE
    yield p_word(each.adjusted_p_value) if each.HasField("adjusted_p_value") else NONE
    yield Text(_verdict(each), _VERDICT_STYLES.get(each.verdict, ""))


def _verdict(each: comparison_pb2.Difference) -> str:
    words: Mapping[comparison_pb2.Verdict.ValueType, str] = {
        comparison_pb2.VERDICT_FIRST_BETTER: f"{_letter(each.first)} is better",
        comparison_pb2.VERDICT_SECOND_BETTER: f"{_letter(each.second)} is better",
        comparison_pb2.VERDICT_NOT_SHOWN: "not shown",
    }
    return words.get(each.verdict, "undefined")


def _notes(each: comparison_pb2.Difference, *, is_brief: bool) -> Iterator[str]:
    """What changes how the row is read; briefly where the row of all tasks says the rest."""
    if each.remark:
        yield each.remark
    if is_brief:
        return
    if each.verdict == comparison_pb2.VERDICT_NOT_SHOWN and each.HasField("smallest_detectable"):
        yield (
            f"{each.pairs} pairs would have shown a difference of {each.smallest_detectable:.4f} "
            "(power 80 %); not shown is not equal"
        )
    if each.HasField("difference_if_parsed"):
        yield (
            f"{each.first_unparsed} and {each.second_unparsed} answers were unparsed and count as wrong; "
            f"without them the difference is {each.difference_if_parsed:+z.4f}"
        )
    if each.first_failed or each.second_failed:
        yield f"left out: the machinery failed on {each.first_failed} and {each.second_failed} samples"


def _where(each: comparison_pb2.Difference) -> str:
    return f"{each.task or _ALL_TASKS} ({each.metric})"


def _letter(place: int) -> str:
    return ascii_uppercase[place]


_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class FlipChoice:
    """Which samples that differ are listed."""

    task: str
    metric: str
    limit: int | None


def compare(
    *,
    names: Annotated[
        list[str], typer.Argument(metavar="RUN|MODEL", help="Ids of runs, or models with --suite; 2 to 6.")
    ],
    suite: Annotated[str, typer.Option(help="Compare the models' latest complete runs of it.")] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Only this metric; repeat for several. Else each task's main one."),
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeat for several.")] = None,
    flips: Annotated[
        str, typer.Option(metavar="TASK", help="Also list its samples on which the two differ.")
    ] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="List no more of them.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare although scored in different ways; it is said so.")
    ] = False,
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs or models, paired by sample: difference, interval, p and verdict per task."""
    terminal = Terminal(as_json)
    compared = Compared(names, suite, metric or (), task or (), force)
    chosen = FlipChoice(flips, metric[0] if metric else "", limit) if flips else None

    async def work() -> ExitCode:
        if chosen and len(names) != 2:
            raise Refused("--flips is about two runs or models, not more.", "INVALID_PARAMETER")
        async with ProctorClient(find_gateway(gateway)) as client:
            comparison = await client.comparisons.compare(compared)
            flipped = await _flips(client, comparison, chosen) if chosen else None
        _show(terminal, comparison, flipped)
        return ExitCode.OK

    execute(terminal, work)


async def _flips(
    client: ProctorClient, comparison: comparison_pb2.Comparison, chosen: FlipChoice
) -> list[comparison_pb2.Flip]:
    first, second = comparison.runs
    request = comparing_pb2.ListFlipsRequest(
        first_run_id=first.run_id,
        second_run_id=second.run_id,
        task=chosen.task,
        metric=chosen.metric,
        page_size=min(chosen.limit or _PAGE_SIZE, _PAGE_SIZE),
    )
    found: list[comparison_pb2.Flip] = []
    async with aclosing(client.comparisons.flips(request)) as flips:
        async for flip in flips:
            found.append(flip)
            if len(found) == chosen.limit:
                break
    return found


def _show(
    terminal: Terminal, comparison: comparison_pb2.Comparison, flips: list[comparison_pb2.Flip] | None
) -> None:
    if terminal.is_json:
        shown = document(comparison)
        terminal.emit(shown if flips is None else {**shown, "flips": [document(flip) for flip in flips]})
        return
    print_comparison(terminal.out, comparison)
    if flips is not None:
        print_flips(terminal.out, comparison, flips)
        say(terminal.out, f"{len(flips)} samples on which they differ.", style="dim")
