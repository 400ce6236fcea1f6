"""`proctor contamination`: what a corpus or a model has of rows. Figures with intervals, no claims."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from proctor.cli.gateway import api_key, command_group, find_gateway
from proctor.cli.options import AsJson, Gateway
from proctor.cli.render.terminal import Terminal, execute, say
from proctor.cli.render.words import JsonValue, counted
from proctor.cli.results.contamination.corpus import corpus_files, documents
from proctor.cli.results.contamination.overlap import (
    Difference,
    RowGrams,
    Share,
    difference,
    find_canaries,
)
from proctor.cli.results.contamination.probe_command import probe
from proctor.cli.results.contamination.rows import Row, read_rows
from proctor.client.errors import Refused
from proctor.client.proctor_client import ProctorClient
from proctor.exit_codes import ExitCode
from proctor.v1 import results_service_pb2 as results_pb2
from proctor.v1 import summary_pb2
from proctor.values.names.contamination import MAX_NGRAM

_SHOWN_ROWS = 20
StoredWith = Annotated[
    str,
    typer.Option("--run", metavar="RUN_ID", help="Also store the figure with this run, beside its score."),
]


def overlap(
    rows: Annotated[
        Path,
        typer.Argument(metavar="ROWS", help="Rows as lines of JSON, or the JSONL of `proctor export`."),
    ],
    corpus: Annotated[Path, typer.Argument(metavar="FOLDER", help="Texts, .jsonl; .gz too.")],
    *,
    field: Annotated[
        list[str] | None,
        typer.Option(help="Only this field of a row; repeat for several. Default: all its texts."),
    ] = None,
    n: Annotated[int, typer.Option("--ngram", min=2, max=MAX_NGRAM, help="Words of an n-gram.")] = 13,
    share: Annotated[
        float, typer.Option(min=0, max=1, help="A row overlaps where more of its n-grams are found.")
    ] = 0.0,
    run: StoredWith = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Count the rows that share n-grams of words with files of a folder. Needs no server without --run."""
    terminal = Terminal(as_json)

    async def found() -> ExitCode:
        read = read_rows(rows, field or ())
        grams = RowGrams([row.text for row in read], n)
        for path in corpus_files(corpus):
            for document in documents(path):
                grams.read(document)
        shares = grams.shares()
        overlapping = [each > share for each in shares]
        _show_overlap(terminal, read, shares, overlapping, n)
        if run:
            of_rows = Share(sum(overlapping), len(read))
            await _store(run, gateway, _figure(corpus, of_rows, n, _moved(read, overlapping)))
        return ExitCode.OK

    execute(terminal, found)


def canary(
    corpus: Annotated[Path, typer.Argument(metavar="FOLDER", help="Texts, .jsonl; .gz too.")],
    *,
    text: Annotated[
        list[str] | None, typer.Option(help="Also look for this text; repeat for several.")
    ] = None,
    run: StoredWith = "",
    gateway: Gateway = None,
    as_json: AsJson = False,
) -> None:
    """Count the documents of a folder that hold canaries of benchmarks ("canary GUID …")."""
    terminal = Terminal(as_json)

    async def found() -> ExitCode:
        wanted = [each for each in text or () if each.strip()]
        by_canary: Counter[str] = Counter()
        total = held = 0
        for path in corpus_files(corpus):
            for document in documents(path):
                canaries = find_canaries(document, wanted)
                by_canary.update(canaries)
                total += 1
                held += bool(canaries)
        if not total:
            raise Refused(f"{corpus} has no documents.")
        of_documents = Share(held, total)
        if run:
            await _store(run, gateway, _figure(corpus, of_documents))
        if terminal.is_json:
            canaries_found: dict[str, JsonValue] = {**dict(by_canary.most_common())}
            terminal.emit({"documents": _document(of_documents), "canaries": canaries_found})
            return ExitCode.OK
        say(terminal.out, f"{_words(of_documents, 'documents')} hold a canary.")
        for name, times in by_canary.most_common():
            say(terminal.out, f"  {name}: {counted(times, 'document')}")
        return ExitCode.OK

    execute(terminal, found)


def contamination_group() -> typer.Typer:
    return command_group(
        {"overlap": overlap, "canary": canary, "probe": probe},
        about="What a corpus or a model has of the rows of a suite: figures with intervals, no claims.",
    )


def _show_overlap(
    terminal: Terminal, rows: Sequence[Row], shares: Sequence[float], overlapping: Sequence[bool], n: int
) -> None:
    of_rows = Share(sum(overlapping), len(rows))
    moved = _moved(rows, overlapping)
    named = sorted(zip(shares, rows, strict=True), key=lambda one: -one[0])
    if terminal.is_json:
        scores: dict[str, JsonValue] = {
            metric: {"difference": one.mean, "interval": [one.low, one.high]} if one else None
            for metric, one in moved.items()
        }
        listed: list[JsonValue] = [{"row": row.name, "share": each} for each, row in named if each > 0]
        terminal.emit({"ngram": n, "rows": _document(of_rows), "scores": scores, "overlapping": listed})
        return
    say(terminal.out, f"{_words(of_rows, 'rows')} share {n}-grams of words with the corpus.")
    for metric, one in moved.items():
        between = "too few rows of either to compare" if one is None else _between(one)
        say(terminal.out, f"{metric} of rows that overlap minus that of the others: {between}")
    for each, row in named[:_SHOWN_ROWS]:
        if each > 0:
            say(terminal.out, f"  row {row.name}: {each:.0%} of its n-grams", style="dim")
    say(terminal.out, "Overlap does not say that a model was trained on it, nor its absence that it was not.")


def _moved(rows: Sequence[Row], overlapping: Sequence[bool]) -> Mapping[str, Difference | None]:
    """By metric, the scores of the rows that overlap minus those of the others."""
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
    return {metric: _score_difference(rows, overlapping, metric) for metric in metrics}


def _figure(
    corpus: Path, share: Share, ngram: int = 0, moved: Mapping[str, Difference | None] = MappingProxyType({})
) -> summary_pb2.ContaminationFigure:
    """Of canaries without `ngram`."""
    kind = summary_pb2.CONTAMINATION_KIND_OVERLAP if ngram else summary_pb2.CONTAMINATION_KIND_CANARY
    figure = summary_pb2.ContaminationFigure(
        kind=kind, corpus=corpus.resolve().name, found=share.found, searched=share.of, ngram=ngram
    )
    for metric, one in moved.items():
        if one is not None:
            figure.differences.add(metric=metric, difference=one.mean, ci_low=one.low, ci_high=one.high)
    return figure


async def _store(run_id: str, gateway: str | None, figure: summary_pb2.ContaminationFigure) -> None:
    address = find_gateway(gateway)
    async with ProctorClient(address, api_key=api_key(address)) as client:
        request = results_pb2.RecordContaminationRequest(run_id=run_id, figure=figure)
        await client.outcomes.RecordContamination(request)


def _score_difference(rows: Sequence[Row], overlapping: Sequence[bool], metric: str) -> Difference | None:
    sides: tuple[list[float], list[float]] = ([], [])
    for row, overlaps in zip(rows, overlapping, strict=True):
        if (score := row.score(metric)) is not None:
            sides[not overlaps].append(score)
    return difference(*sides)


def _between(one: Difference) -> str:
    return f"{one.mean:+.4f} (95 % from {one.low:+.4f} to {one.high:+.4f})"


def _words(share: Share, what: str) -> str:
    low, high = share.interval
    return f"{share.found:,} of {share.of:,} {what} ({share.mean:.1%}, 95 % from {low:.1%} to {high:.1%})"


def _document(share: Share) -> dict[str, JsonValue]:
    return {"found": share.found, "of": share.of, "share": share.mean, "interval": [*share.interval]}
