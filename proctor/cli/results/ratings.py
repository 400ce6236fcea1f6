"""`proctor ratings`: models of a benchmark by the verdicts of judges on pairs of their answers."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.render.table import Cell, Column, numbers, table
from proctor.cli.render.terminal import say
from proctor.cli.suites.known_suites import refuse_unknown_benchmark
from proctor.v1 import leaderboard_service_pb2

# Above it a test finds no place that the judges favour.
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class RatingsOptions:
    """The verdicts that count."""

    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="A suite, such as glue, or the id of a data set.")
    ]
    prompt: Annotated[
        str, typer.Option(help="A judge prompt of pairs; default: that of the newest judging run.")
    ] = ""
    judge: Annotated[str, typer.Option(help="Only verdicts of this model, provider/name.")] = ""
    style_control: Annotated[
        bool,
        typer.Option(
            "--style-control", help="Take what length and markup add to verdicts out of the ratings."
        ),
    ] = False
    project: Annotated[int | None, typer.Option(min=0, help="Only judging runs of this project.")] = None

    def to_proto(self) -> leaderboard_service_pb2.GetRatingsRequest:
        return leaderboard_service_pb2.GetRatingsRequest(
            benchmark=self.benchmark,
            prompt=self.prompt,
            judge=self.judge,
            project_id=self.project,
            is_style_controlled=self.style_control,
        )


async def ratings(session: Session, options: RatingsOptions) -> None:
    """Rate the models of a benchmark by judged pairs of their answers; ties share a rank."""
    found = await session.client.leaderboard.GetRatings(options.to_proto())
    if not found.judging_run_ids:
        await refuse_unknown_benchmark(session.client, options.benchmark)
    if not found.models and not session.terminal.is_json:
        say(session.terminal.out, f"No pair of answers of {options.benchmark} was judged yet.")
        for prompt in found.other_prompts:
            say(session.terminal.out, f"There are verdicts of another prompt: --prompt {prompt}", style="dim")
        return
    session.terminal.show(found, print_ratings)


def print_ratings(console: Console, found: leaderboard_service_pb2.GetRatingsResponse) -> None:
    columns = (*numbers("rank"), Column("model"), *numbers("rating", "95 % interval", "won", "tied", "lost"))
    console.print(table(console, columns, _rows(found)))
    pairs = f"{found.matches:,} pairs, judged by {', '.join(found.judges)} with {found.prompt}"
    say(console, f"{pairs}; 400 points are odds of ten to one", style="dim")
    for effect in found.style_effects:
        interval = f"{effect.ci_low:+.0f} to {effect.ci_high:+.0f}"
        say(
            console, f"A doubling of {effect.name} adds {effect.points:+.0f} points ({interval})", style="dim"
        )
    if found.HasField("first_place_p_value") and found.first_place_p_value <= _LEVEL:
        place = "first" if found.first_place_bias > 0 else "second"
        share = f"{abs(found.first_place_bias):.1%}"
        say(
            console,
            f"An answer wins {share} of pairs more often where it is shown {place}",
            style="yellow",
        )
    if found.unrated_models:
        names = ", ".join(found.unrated_models)
        say(console, f"Not rated, no chain of judged pairs joins them with these: {names}", style="yellow")
    if found.left_out_runs:
        say(console, f"{found.left_out_runs:,} older judging runs are left out", style="yellow")


def _rows(found: leaderboard_service_pb2.GetRatingsResponse) -> Iterator[Sequence[Cell]]:
    of_rank = Counter(one.rank for one in found.models)
    for one in found.models:
        yield (
            f"{one.rank}{'=' if of_rank[one.rank] > 1 else ''}",
            one.model,
            f"{one.rating:+.0f}",
            f"{one.ci_low:+.0f} to {one.ci_high:+.0f}",
            f"{one.wins:,}",
            f"{one.ties:,}",
            f"{one.losses:,}",
        )
