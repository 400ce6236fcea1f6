"""`proctor annotate` and `proctor annotations`: people say of answers what judges are asked."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import Console

from proctor.cli.gateway import Session
from proctor.cli.render.table import Cell, Column, table
from proctor.cli.render.terminal import say, write_verbatim
from proctor.cli.render.words import document
from proctor.v1 import annotation_service_pb2 as annotation_pb2
from proctor.v1 import results_service_pb2 as results_pb2

_QUIT, _CANNOT_TELL = "q", "?"
_PAGE = 500
_MEASURES = {
    annotation_pb2.AGREEMENT_MEASURE_COHENS_KAPPA: "Cohen's kappa",
    annotation_pb2.AGREEMENT_MEASURE_KRIPPENDORFFS_ALPHA: "Krippendorff's alpha",
}
RunId = Annotated[
    str, typer.Argument(metavar="RUN_ID", help="A judging run, or the run whose answers they are.")
]


async def annotate(
    session: Session,
    run_id: RunId,
    *,
    raters: Annotated[int, typer.Option(min=1, max=10, help="People who annotate each answer.")] = 2,
    is_disagreement_first: Annotated[
        bool, typer.Option("--disagreement-first", help="First what the judges disagree about most.")
    ] = False,
) -> None:
    """Annotate answers one after the other, on the scale of the judge: LABEL [COMMENT], ? or q a line."""
    request = annotation_pb2.FindUnannotatedRequest(
        run_id=run_id, raters=raters, is_disagreement_first=is_disagreement_first
    )
    console, done = session.terminal.progress, 0
    while True:
        found = await session.client.annotations.FindUnannotated(request)
        if not found.HasField("sample"):
            say(console, "No answer is left for you to annotate.")
            break
        await _print_answer(session, found)
        said = await _asked(console, [label.label for label in found.question.labels])
        if said is None:
            break
        label, comment = said
        await session.client.annotations.AnnotateAnswer(
            annotation_pb2.AnnotateAnswerRequest(
                run_id=run_id, sample=found.sample, rollout=found.rollout, label=label, comment=comment
            )
        )
        done += 1
    sentence = f"{done} {'answer is' if done == 1 else 'answers are'} annotated."
    session.terminal.report({"annotated": done}, sentence)


async def _print_answer(session: Session, found: annotation_pb2.FindUnannotatedResponse) -> None:
    request = results_pb2.ListOutcomesRequest(
        run_id=found.question.run_id, first_sample=found.sample, first_rollout=found.rollout, page_size=1
    )
    console = session.terminal.progress
    for recorded in (await session.client.outcomes.ListOutcomes(request)).outcomes:
        answer = recorded.outcome.answer.text or recorded.prediction
        for name, text in (("prompt", recorded.prompt), ("target", recorded.target), ("answer", answer)):
            if text:
                say(console, f"{name} of sample {found.sample}:", style="dim")
                write_verbatim(console, text)


async def _asked(console: Console, labels: Sequence[str]) -> tuple[str, str] | None:
    """A label, or "" for an answer that the person cannot tell of, with a comment; None: no more."""
    choices = f"{', '.join(labels)}, {_CANNOT_TELL} (cannot tell), {_QUIT} (quit)"
    while True:
        say(console, f"Label [{choices}], then a comment if you like:")
        line = await asyncio.to_thread(sys.stdin.readline)
        word, _, comment = line.strip().partition(" ")
        # A label may have spaces.
        label = next((one for one in labels if f"{line.strip()} ".startswith(f"{one} ")), None)
        if label is not None:
            return label, line.strip().removeprefix(label).strip()
        if word == _CANNOT_TELL:
            return "", comment.strip()
        if not line or word == _QUIT:
            return None


async def annotations(session: Session, run_id: RunId) -> None:
    """Show own annotations, those of answers that two people have annotated, and how far people agree."""
    agreement = await session.client.annotations.GetAgreement(
        annotation_pb2.GetAgreementRequest(run_id=run_id)
    )
    request = annotation_pb2.ListAnnotationsRequest(run_id=run_id, page_size=_PAGE)
    found: list[annotation_pb2.Annotation] = []
    while True:
        page = await session.client.annotations.ListAnnotations(request)
        found += page.annotations
        request.page_token = page.next_page_token
        if not request.page_token:
            break
    if session.terminal.is_json:
        session.terminal.emit(
            {"agreement": document(agreement), "annotations": [document(one) for one in found]}
        )
        return
    console = session.terminal.out
    columns = (Column("sample"), Column("person"), Column("label"), Column("comment"))
    console.print(table(console, columns, _rows(found)))
    say(console, _in_words(agreement))


def _rows(found: Sequence[annotation_pb2.Annotation]) -> Iterator[Sequence[Cell]]:
    for one in found:
        rollout = f" #{one.rollout}" if one.rollout else ""
        yield f"{one.sample}{rollout}", one.user, one.label or "cannot tell", one.comment


def _in_words(found: annotation_pb2.GetAgreementResponse) -> str:
    counts = (
        f"{found.annotated:,} of {found.answers:,} answers are annotated, {found.own:,} by you,"
        f" {found.annotated_twice:,} by two people or more; {found.drawn:,} calibrate judges."
    )
    if not found.HasField("value"):
        return counts
    ends = f" (95 % from {found.ci_low:.2f} to {found.ci_high:.2f})" if found.HasField("ci_low") else ""
    measure = _MEASURES.get(found.measure, "agreement")
    over = f"over {found.units:,} answers"
    return f"{counts} {measure} of {found.raters} people is {found.value:.2f}{ends}, {over}."
