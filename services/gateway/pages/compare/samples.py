"""Samples side by side: only those whose answers differ, with the words that do."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from proctor.v1 import answer_service_pb2 as answer_pb2
from proctor.v1 import outcome_pb2, summary_pb2
from services.gateway.api.dataset_runs.rows import given_answer
from services.gateway.backends.calls import Results
from services.gateway.pages.compare.address import CompareAddress
from services.gateway.pages.rows.answer_marks import MarkView, mark_of, outcome_badge, silence

_WORD = re.compile(r"\s*\w+|\s*[^\w\s]|\s+")
# Texts with more differences than these are shown without highlights: they have little in common.
MAX_CHANGES = 150
# The rest of a longer text is shown without highlights; with the bound above this is some milliseconds.
MAX_CHARACTERS = 8_000

# For each number of changes, how far each diagonal of the edit graph was followed before it.
_Trace = list[dict[int, int]]
PAGE_SIZE = 20
# A filter on what was gained or lost looks through so many pages for one call.
_MAX_PAGES = 5
# A page compares the words of all its rows, once for each run beside the first.
_MAX_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text; `is_own` where the other text does not have it."""

    text: str
    is_own: bool


def own_pieces(base: str, other: str) -> list[Piece]:
    """`other` in pieces: those of its own, and those that are in `base` too, in the same order.

    In bounded time: both may be hostile.
    """
    given = other[:MAX_CHARACTERS]
    before, after = _WORD.findall(base[:MAX_CHARACTERS]), _WORD.findall(given)
    own = _own_words([word.strip() for word in before], [word.strip() for word in after])
    pieces: list[Piece] = []
    for word, is_own in zip(after, own, strict=True):
        if pieces and pieces[-1].is_own == is_own:
            pieces[-1] = Piece(pieces[-1].text + word, is_own)
        else:
            pieces.append(Piece(word, is_own))
    if len(other) > len(given):
        pieces.append(Piece(f" … ({len(other) - len(given)} more characters)", is_own=False))
    return pieces


def _own_words(before: Sequence[str], after: Sequence[str]) -> list[bool]:
    """Which words of `after` a shortest edit inserts. Myers, An O(ND) Difference Algorithm (1986)."""
    trace = _followed(before, after)
    if trace is None:
        return [False] * len(after)
    own = [False] * len(after)
    at, to = len(before), len(after)
    for changes in range(len(trace) - 1, 0, -1):
        furthest, diagonal = trace[changes], at - to
        is_down = _goes_down(furthest, diagonal, changes)
        earlier = diagonal + 1 if is_down else diagonal - 1
        at = furthest[earlier]
        to = at - earlier
        if is_down:
            own[to] = True
    return own


def _followed(before: Sequence[str], after: Sequence[str]) -> _Trace | None:
    """None where there are too many changes."""
    furthest: dict[int, int] = {1: 0}
    trace: _Trace = []
    for changes in range(min(len(before) + len(after), MAX_CHANGES) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            at = (
                furthest[diagonal + 1]
                if _goes_down(furthest, diagonal, changes)
                else furthest[diagonal - 1] + 1
            )
            to = at - diagonal
            while at < len(before) and to < len(after) and before[at] == after[to]:
                at, to = at + 1, to + 1
            furthest[diagonal] = at
            if at >= len(before) and to >= len(after):
                return trace
    return None


def _goes_down(furthest: dict[int, int], diagonal: int, changes: int) -> bool:
    """Whether the path enters this diagonal by an inserted word."""
    return diagonal == -changes or (
        diagonal != changes and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
    )


@dataclass(frozen=True, slots=True)
class AnswerBeside:
    """An answer; `css_class` is that of its badge.

    `pieces` are highlighted where the answer of the reference run has other words; in that answer, where
    the only other one has.
    """

    css_class: str
    word: str
    pieces: Sequence[Piece]
    text: str
    failure: str
    prediction: str
    reasoning: str
    silence: str
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

    Keys have the filter that an answer is read through; `wanted` may leave it out.
    """
    tasks = [each for each in summary.tasks if each.task == task or not task]
    keys = [figure.metric for each in tasks for figure in each.metrics]
    named = [key for key in keys if key == wanted or key.startswith(f"{wanted},")] if wanted else keys
    return (named or keys or [wanted])[0]


def shared_tasks(summaries: Sequence[summary_pb2.RunSummary]) -> Sequence[str]:
    """The tasks of the first run that all have."""
    tasks = [{task.task: None for task in summary.tasks} for summary in summaries]
    return [name for name in (tasks[0] if tasks else ()) if all(name in names for names in tasks)]


async def differing_samples(
    results: Results, run_ids: Sequence[str], address: CompareAddress, metric: str
) -> SamplesView:
    """`metric` has the scores that are right or wrong; "" for the first of each answer."""
    rows: list[answer_pb2.SideBySideRow] = []
    following, looked = "", 0
    async with aclosing(shown_pages(results, replace(address, runs=run_ids), metric, PAGE_SIZE)) as pages:
        async for page, token in pages:
            rows += page
            following, looked = token, looked + 1
            # Half a page is enough to look at: the next call goes on from the token.
            if len(rows) >= PAGE_SIZE // 2 or looked == _MAX_PAGES:
                break
    return SamplesView([_sample(row, run_ids, metric) for row in rows], following)


async def shown_pages(
    results: Results, address: CompareAddress, metric: str, size: int
) -> AsyncGenerator[tuple[Sequence[answer_pb2.SideBySideRow], str]]:
    """Pages of the samples that the address asks for, from its place on, each with the token of the next."""
    token = address.after
    while True:
        request = answer_pb2.ListSideBySideRequest(
            run_ids=address.runs,
            task=address.task,
            only_differing=address.show != "all",
            page_size=size,
            page_token=token,
        )
        page = await results.answers.ListSideBySide(request)
        token = page.next_page_token
        yield [row for row in page.rows if _is_shown(row, address, metric)], token
        if not token:
            return


def _is_shown(row: answer_pb2.SideBySideRow, address: CompareAddress, metric: str) -> bool:
    if address.show not in {"gained", "lost"}:
        return True
    before = score_of(row.answers[0].outcome, metric)
    after = score_of(row.answers[address.against].outcome, metric)
    if before is None or after is None:
        return False
    return after > before if address.show == "gained" else after < before


def score_of(recorded: outcome_pb2.RecordedOutcome, metric: str) -> float | None:
    if metric in recorded.scores:
        return recorded.scores[metric]
    return min(recorded.scores.items())[1] if recorded.scores else None


def _sample(row: answer_pb2.SideBySideRow, run_ids: Sequence[str], metric: str) -> SampleRow:
    texts = [answer_text(each.outcome) if each.HasField("outcome") else "" for each in row.answers]
    # Beside several others the reference run has no one text to differ from.
    beside = [texts[1] if len(texts) == 2 else "", *texts[:1] * (len(texts) - 1)]
    return SampleRow(
        row_id=row.row_id or str(row.doc_id),
        prompt=row.prompt,
        target=row.target,
        answers=[
            _answer(each.outcome, run_ids[index], index, beside[index], metric)
            if each.HasField("outcome")
            else None
            for index, each in enumerate(row.answers)
        ],
    )


def _answer(
    recorded: outcome_pb2.RecordedOutcome, run_id: str, index: int, beside: str, metric: str
) -> AnswerBeside:
    outcome, answer = recorded.outcome, answer_text(recorded)
    given = given_answer(outcome) or outcome_pb2.Answer()
    css_class, word = outcome_badge(recorded, [metric] if metric else ())
    return AnswerBeside(
        css_class=css_class,
        word=word,
        pieces=own_pieces(beside[:_MAX_CHARACTERS], answer[:_MAX_CHARACTERS]) if index or beside else (),
        text=answer,
        failure=outcome.failure.message if outcome.HasField("failure") else "",
        prediction=recorded.prediction if recorded.prediction != answer else "",
        reasoning=given.reasoning,
        silence="" if answer else silence(given.reasoning, given.finish_reason),
        marks=MarkView(run_id, outcome.sample, outcome.rollout, mark_of(recorded), str(index + 1)),
    )


def answer_text(recorded: outcome_pb2.RecordedOutcome) -> str:
    """The text of the answer without its reasoning, or the choice that is one."""
    answer = given_answer(recorded.outcome)
    return (answer.text if answer else "") or recorded.prediction
