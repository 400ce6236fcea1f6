"""Samples side by side: only those whose answers differ, with the words that do."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, summary_pb2
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.backends.calls import Results
from services.gateway.pages.answer_marks import MarkView, mark_of, outcome_mark
from services.gateway.pages.compare.address import CompareAddress
from services.gateway.pages.compare.text_difference import Piece, own_pieces

PAGE_SIZE = 20
# A filter on what was gained or lost looks through so many pages for one call.
_MAX_PAGES = 5
# A page compares the words of all its rows, once for each run beside the first.
_MAX_LETTERS = 4000


@dataclass(frozen=True, slots=True)
class AnswerBeside:
    """An answer; `pieces` are marked where the baseline's has other words. `key` names it in its run."""

    run_id: str
    index: int
    key: str
    sample: int
    outcome: str
    word: str
    pieces: Sequence[Piece]
    text: str
    failure: str
    prediction: str
    marks: MarkView


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample with the answers of all runs, None where one has none."""

    row_id: str
    prompt: str
    target: str
    answers: Sequence[AnswerBeside | None]


@dataclass(frozen=True, slots=True)
class SamplesView:
    """`fault`: why no samples can be shown side by side."""

    rows: Sequence[SampleRow] = ()
    following: str = ""
    fault: str = ""


def compared_metric(summary: summary_pb2.RunSummary, task: str, wanted: str) -> str:
    """The key of the scores that a comparison counts: the first metric of the task, or the wanted one.

    Keys have the filter that an answer is read through; who wants a metric may leave it out.
    """
    tasks = [each for each in summary.tasks if each.task == task or not task]
    keys = [figure.metric for each in tasks for figure in each.metrics]
    named = [key for key in keys if key == wanted or key.startswith(f"{wanted},")] if wanted else keys
    return (named or keys or [wanted])[0]


async def differing_samples(
    results: Results, run_ids: Sequence[str], address: CompareAddress, metric: str
) -> SamplesView:
    """`metric` has the scores that are right or wrong; "" for the first of each answer."""
    rows: list[answer_pb2.SideBySideRow] = []
    token = address.after
    for _ in range(_MAX_PAGES):
        request = answer_pb2.ListSideBySideRequest(
            run_ids=run_ids,
            task=address.task,
            only_differing=address.show != "all",
            page_size=PAGE_SIZE,
            page_token=token,
        )
        page = await results.answers.ListSideBySide(request)
        rows += [row for row in page.rows if _is_shown(row, address, metric)]
        token = page.next_page_token
        # Half a page is enough to look at: the next call goes on from the token.
        if not token or len(rows) >= PAGE_SIZE // 2:
            break
    return SamplesView([_sample(row, run_ids, metric) for row in rows], token)


def _is_shown(row: answer_pb2.SideBySideRow, address: CompareAddress, metric: str) -> bool:
    if address.show not in {"gained", "lost"}:
        return True
    before = _score(row.answers[0].outcome, metric)
    after = _score(row.answers[address.against].outcome, metric)
    if before is None or after is None:
        return False
    return after > before if address.show == "gained" else after < before


def _score(recorded: outcome_pb2.RecordedOutcome, metric: str) -> float | None:
    if metric in recorded.scores:
        return recorded.scores[metric]
    return min(recorded.scores.items())[1] if recorded.scores else None


def _sample(row: answer_pb2.SideBySideRow, run_ids: Sequence[str], metric: str) -> SampleRow:
    base = _said(row.answers[0].outcome) if row.answers[0].HasField("outcome") else ""
    return SampleRow(
        row_id=row.row_id or str(row.doc_id),
        prompt=row.prompt,
        target=row.target,
        answers=[
            _answer(each.outcome, run_ids[index], index, base, metric) if each.HasField("outcome") else None
            for index, each in enumerate(row.answers)
        ],
    )


def _answer(
    recorded: outcome_pb2.RecordedOutcome, run_id: str, index: int, base: str, metric: str
) -> AnswerBeside:
    outcome, said = recorded.outcome, _said(recorded)
    mark, word = outcome_mark(recorded, [metric] if metric else ())
    return AnswerBeside(
        run_id=run_id,
        index=index,
        key=f"{outcome.sample}.{outcome.rollout}",
        sample=outcome.sample,
        outcome=mark,
        word=word,
        pieces=own_pieces(base[:_MAX_LETTERS], said[:_MAX_LETTERS]) if index else (),
        text=said,
        failure=outcome.failure.message if outcome.HasField("failure") else "",
        prediction=recorded.prediction if recorded.prediction != said else "",
        marks=MarkView(run_id, outcome.sample, outcome.rollout, mark_of(recorded), str(index + 1)),
    )


def _said(recorded: outcome_pb2.RecordedOutcome) -> str:
    """The text of the answer, or the choice that is one."""
    answer = given_answer(recorded.outcome)
    return (answer.text if answer else "") or recorded.prediction
