"""`proctor compare`: the differences between runs or models, paired by sample, one table per pair."""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from proctor.cli.gateway import Session
from proctor.cli.render.table import Column, numbers, table, texts
from proctor.cli.render.terminal import quoted, say, write_verbatim
from proctor.cli.render.words import NONE, document, p_word, scoring_word
from proctor.cli.results.judged import judging_runs
from proctor.client.errors import ClientError, Refused, Unreachable
from proctor.client.pages import all_pages
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import (
    comparison_pb2,
    comparison_service_pb2,
    leaderboard_service_pb2,
    run_pb2,
)
from proctor.values.comparison import MAX_COMPARED, MIN_COMPARED
from proctor.wire.comparison_notes import (
    judge_warnings,
    judged_sentence,
    judges_of_both,
    main_metric,
    names_of_runs,
    noise_sentence,
)

_ALL_TASKS = "all tasks"
_PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The runs or models to compare, and by which metrics."""

    names: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN|MODEL",
            help=f"Ids of runs, or models with --suite; {MIN_COMPARED} to {MAX_COMPARED}.",
        ),
    ]
    benchmark: Annotated[
        str,
        typer.Option(
            "--suite", help="Compare the models' latest completed runs of it; the id of a data set works too."
        ),
    ] = ""
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Only this metric; repeat for several. Default: each task's main metric."),
    ] = None
    task: Annotated[list[str] | None, typer.Option(help="Only this task; repeat for several.")] = None
    flips: Annotated[
        str, typer.Option(metavar="TASK", help="Also list the samples of TASK with different scores.")
    ] = ""
    max_flips: Annotated[int | None, typer.Option(min=1, help="Maximum number of samples listed.")] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Compare runs with different scoring methods or options of a metric; the output says so.",
        ),
    ] = False


async def compare(session: Session, options: CompareOptions) -> None:
    """Compare runs or models, paired by sample: difference, interval, p and verdict per task."""
    if options.flips and len(options.names) != 2:
        raise Refused("--flips needs exactly two runs or models.")
    runs, models = runs_and_models(options.names, options.benchmark)
    comparison = (
        await session.client.comparisons.CompareRuns(
            comparison_service_pb2.CompareRunsRequest(
                run_ids=runs,
                models=models,
                benchmark=options.benchmark,
                metrics=options.metric,
                tasks=options.task,
                is_forced=options.force,
            )
        )
    ).comparison
    notes = await _notes_beside(session.client, comparison)
    if not options.flips:
        if session.terminal.is_json:
            session.terminal.emit({**document(comparison), "notes": list(notes)})
        else:
            print_comparison(session.terminal.out, comparison)
            _print_notes(session.terminal.out, notes)
        return
    request = comparison_service_pb2.ListFlipsRequest(
        first_run_id=comparison.runs[0].run_id,
        second_run_id=comparison.runs[1].run_id,
        task=options.flips,
        metric=options.metric[0] if options.metric else "",
    )
    found = await _flips(session.client, request, options.max_flips)
    if session.terminal.is_json:
        session.terminal.emit(
            {**document(comparison), "flips": [document(flip) for flip in found], "notes": list(notes)}
        )
    else:
        print_comparison(session.terminal.out, comparison)
        _print_notes(session.terminal.out, notes)
        of_flips = [each for each in comparison.differences if each.task == options.flips]
        print_flips(session.terminal.out, found, less_is_better=any(each.less_is_better for each in of_flips))


async def _notes_beside(client: ProctorClient, comparison: comparison_pb2.Comparison) -> Sequence[str]:
    """What single runs scatter by, where repetitions are stored; and whether the runs were judged alike."""
    notes: list[str] = []
    metric, known = main_metric(comparison), set[str]()
    for run in comparison.runs if metric else ():
        if run.run_id in known:
            continue
        try:
            request = leaderboard_service_pb2.GetNoiseRequest(run_id=run.run_id, metric=metric)
            noise = await client.leaderboard.GetNoise(request)
        except Unreachable:
            raise
        except ClientError:
            # Such as an archived run: the comparison stands without.
            continue
        known |= {*noise.run_ids}
        if noise.HasField("split"):
            notes.append(noise_sentence(run.model, noise, f"{noise.split.noise_floor:.4f}"))
    judging = [await judging_runs(client, run.run_id) for run in comparison.runs]
    names = names_of_runs(comparison.runs)
    notes += await _judged_differences(client, names, judging)
    return [*notes, *judge_warnings(names, judging)]


async def _judged_differences(
    client: ProctorClient, names: Sequence[str], judging: Sequence[Sequence[run_pb2.Run]]
) -> Sequence[str]:
    """Two runs by each judge of both, corrected for its error."""
    sentences = []
    for first, second in judges_of_both(judging):
        both = answer_pb2.CalibrateJudgeRequest(run_id=first.run_id, against_run_id=second.run_id)
        try:
            found = await client.answers.CalibrateJudge(both)
        except Unreachable:
            raise
        except ClientError:
            # Such as runs over other samples.
            continue
        if sentence := judged_sentence(names, first, found.difference):
            sentences.append(sentence)
    return sentences


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    for note in notes:
        say(console, f"Note: {note}", style="yellow")


def runs_and_models(names: Sequence[str], benchmark: str) -> tuple[Sequence[str], Sequence[str]]:
    """Models stand for their latest completed runs of the benchmark; one of the two is empty."""
    are_runs = {_is_run(name) for name in names}
    if len(are_runs) > 1:
        raise Refused("Compare either runs by their ids or models, not both.")
    if are_runs == {True}:
        return names, ()
    if not benchmark:
        raise Refused("Models are compared on a suite: name it (--suite glue).")
    return (), names


def _is_run(name: str) -> bool:
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


async def _flips(
    client: ProctorClient, request: comparison_service_pb2.ListFlipsRequest, max_flips: int | None
) -> list[comparison_pb2.Flip]:
    request.page_size = min(max_flips or _PAGE_SIZE, _PAGE_SIZE)
    found: list[comparison_pb2.Flip] = []
    async with aclosing(all_pages(client.comparisons.ListFlips, request)) as pages:
        async for page in pages:
            found += page.flips
            if max_flips and len(found) >= max_flips:
                break
    return found[:max_flips]


def print_comparison(console: Console, comparison: comparison_pb2.Comparison) -> None:
    for letter, run in zip(ascii_uppercase, comparison.runs, strict=False):
        say(console, f"{letter}  {run.model}", style="bold")
        say(console, f"   {_facts(run)}", style="dim")
    if comparison.conditions:
        console.print(_conditions_table(console, comparison))
    for pair in dict.fromkeys((each.first, each.second) for each in comparison.differences):
        differences = [each for each in comparison.differences if (each.first, each.second) == pair]
        console.print(_pair_table(console, differences))
        has_total = any(not each.task for each in differences)
        for each in differences:
            for note in _notes(each, is_brief=bool(has_total and each.task)):
                say(console, f"{each.task or _ALL_TASKS} ({each.metric}): {note}", style="dim")
    say(console, f"p is two-sided and corrected (Holm) over {comparison.corrected_over} tests.", style="dim")
    for warning in comparison.warnings:
        say(console, f"Note: {warning}", style="yellow")


def _conditions_table(console: Console, comparison: comparison_pb2.Comparison) -> Table:
    letters = ascii_uppercase[: len(comparison.runs)]
    rows = (
        (f"{one.name} in {', '.join(one.tasks)}" if one.tasks else one.name, *one.values)
        for one in comparison.conditions
    )
    title = "Other conditions: these figures are not those of the models alone"
    return table(console, (Column("condition"), *texts(*letters)), rows, title)


def print_flips(
    console: Console, flips: Sequence[comparison_pb2.Flip], *, less_is_better: bool = False
) -> None:
    """One block per sample with its whole prompt."""
    for flip in flips:
        console.rule(f"{flip.task} row {flip.doc_id}", align="left", style="dim")
        write_verbatim(console, flip.prompt)
        say(console, Text.assemble(("target  ", "bold"), quoted(flip.target)))
        answers = ((flip.first_prediction, flip.first_score), (flip.second_prediction, flip.second_score))
        best = (min if less_is_better else max)(flip.first_score, flip.second_score)
        for letter, (prediction, score) in zip("AB", answers, strict=True):
            style = "green" if score == best else "red"
            say(console, Text.assemble((f"{letter} {score:<8.4g}", style), quoted(prediction)))
    say(console, f"{len(flips)} samples on which they differ.", style="dim")


def _facts(run: comparison_pb2.ComparedRun) -> str:
    facts = [
        f"run {run.run_id}",
        scoring_word(run.scoring_method),
        f"first {run.limit} rows of each task" if run.HasField("limit") else "",
        f"{run.score:.4f} on the whole benchmark" if run.HasField("score") else "no figure of the benchmark",
        f"{run.unparsed_rate:.1%} unparsed" if run.HasField("unparsed_rate") else "",
    ]
    return ", ".join(fact for fact in facts if fact)


def _pair_table(console: Console, differences: Sequence[comparison_pb2.Difference]) -> Table:
    first, second = ascii_uppercase[differences[0].first], ascii_uppercase[differences[0].second]
    figures = numbers(first, second, f"{first} − {second}", "95 % interval", "p")
    columns = (Column("task"), Column("metric", "whole"), *figures, Column("verdict", "whole"))
    made = table(console, columns)
    # The row of all tasks comes last, like a sum.
    for each in sorted(differences, key=lambda each: not each.task):
        made.add_row(*_cells(each), style="bold" if not each.task else "")
    return made


def _cells(each: comparison_pb2.Difference) -> Iterator[str | Text]:
    yield each.task or _ALL_TASKS
    yield each.metric
    yield f"{each.first_mean:.4f}" if each.HasField("first_mean") else NONE
    yield f"{each.second_mean:.4f}" if each.HasField("second_mean") else NONE
    yield f"{each.difference:+z.4f}" if each.HasField("difference") else NONE
    has_interval = each.HasField("ci_low") and each.HasField("ci_high")
    yield f"{each.ci_low:+z.4f} to {each.ci_high:+z.4f}" if has_interval else NONE
    yield p_word(each.adjusted_p_value) if each.HasField("adjusted_p_value") else NONE
    match each.verdict:
        case comparison_pb2.VERDICT_FIRST_BETTER:
            yield Text(f"{ascii_uppercase[each.first]} is better", "green")
        case comparison_pb2.VERDICT_SECOND_BETTER:
            yield Text(f"{ascii_uppercase[each.second]} is better", "green")
        case comparison_pb2.VERDICT_NOT_SHOWN:
            yield "not shown"
        case _:
            yield Text("undefined", "yellow")


def _verdict_if_parsed(each: comparison_pb2.Difference) -> str:
    size = f" ({each.difference_if_parsed:+z.4f})" if each.HasField("difference_if_parsed") else ""
    match each.verdict_if_parsed:
        case comparison_pb2.VERDICT_FIRST_BETTER:
            return f"{ascii_uppercase[each.first]} is better{size}"
        case comparison_pb2.VERDICT_SECOND_BETTER:
            return f"{ascii_uppercase[each.second]} is better{size}"
        case comparison_pb2.VERDICT_NOT_SHOWN:
            return f"no difference is shown{size}"
        case _:
            return "the data allow no verdict"


def _notes(each: comparison_pb2.Difference, *, is_brief: bool) -> Iterator[str]:
    """Caveats of a row; only the remark if the row of all tasks has the others."""
    if each.remark:
        yield each.remark
    if each.depends_on_unparsed:
        yield f"the verdict depends on unparsed answers; without them {_verdict_if_parsed(each)}"
    if is_brief:
        return
    if each.verdict == comparison_pb2.VERDICT_NOT_SHOWN and each.HasField("smallest_detectable"):
        yield (
            f"{each.pairs} pairs would have shown a difference of {each.smallest_detectable:.4f} "
            "(power 80 %); not shown is not equal"
        )
    if each.HasField("noise_floor"):
        yield (
            f"rollouts alone move the difference of two runs of one model by up to {each.noise_floor:.4f} "
            "(95 % of repetitions)"
        )
    if each.HasField("difference_if_parsed"):
        yield (
            f"{each.first_unparsed} and {each.second_unparsed} answers were unparsed and count as wrong; "
            f"without them the difference is {each.difference_if_parsed:+z.4f}"
        )
    if each.first_failed or each.second_failed:
        yield f"left out: the machinery failed on {each.first_failed} and {each.second_failed} samples"
