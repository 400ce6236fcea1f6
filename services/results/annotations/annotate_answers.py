"""People annotate answers: the next one of the queue, what they say of it, and what all have said."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.names.user import LOCAL_USER, Caller
from services.common.checked_fields import checked_number, invalid_field
from services.common.requests.page_tokens import read_page_token, write_page_token
from services.common.requests.request_fields import check_stores
from services.results.annotations.annotation import (
    DEFAULT_RATERS,
    MAX_COMMENT_CHARACTERS,
    MAX_RATERS,
    Annotation,
    AnnotationCounts,
    RaterAgreement,
    agreement_of,
)
from services.results.annotations.errors import AnswerNotFound
from services.results.annotations.postgres import AnnotationPlace, PostgresAnnotations
from services.results.annotations.question import Question, question_of
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.ports import RunRecordStore

_LIST = "annotations"
_FIRST: AnnotationPlace = (-1, -1, "")


@dataclass(frozen=True, slots=True)
class QueuedAnswer:
    """The answer that comes next; None: none is left."""

    question: Question
    key: OutcomeKey | None


@dataclass(frozen=True, slots=True)
class Said:
    """What a person says of an answer."""

    key: OutcomeKey
    label: str
    comment: str
    user: str


@dataclass(frozen=True, slots=True)
class AnnotationPage:
    """The token is empty on the last page."""

    annotations: Sequence[Annotation]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Annotated:
    question: Question
    counts: AnnotationCounts
    raters: RaterAgreement


@dataclass(frozen=True, slots=True)
class AnnotateAnswers:
    """Every call raises RecordNotFound and PairsNotAnnotated; `run_id` is a judging run or any other one."""

    records: RunRecordStore
    annotations: PostgresAnnotations

    async def next(self, run_id: str, user: str, raters: int, *, is_disagreement_first: bool) -> QueuedAnswer:
        most = checked_number("raters", raters, maximum=MAX_RATERS, default=DEFAULT_RATERS)
        question = await self._question(run_id)
        key = await self.annotations.find_unannotated(
            question, user or LOCAL_USER, most, is_disagreement_first=is_disagreement_first
        )
        return QueuedAnswer(question, key)

    async def annotate(self, run_id: str, said: Said, caller: Caller) -> None:
        """Raises AnswerNotFound, ProjectNotFound for who only reads in the project of the answers, and an
        error of the field for a label that the scale has not."""
        if len(said.comment) > MAX_COMMENT_CHARACTERS:
            raise invalid_field("comment", f"must be at most {MAX_COMMENT_CHARACTERS:,} characters")
        question = await self._question(run_id)
        check_stores(caller, (await self.records.get(question.run_id)).plan.facts.project_id)
        if said.label and said.label not in question.labels:
            raise invalid_field("label", f"must be {', '.join(question.labels)}, or empty")
        user, (sample, rollout) = said.user or LOCAL_USER, said.key
        if not await self.annotations.store(question, said.key, user, label=said.label, comment=said.comment):
            raise AnswerNotFound(run_id=question.run_id, sample=sample, rollout=rollout)

    async def page(self, run_id: str, user: str, size: int, token: str) -> AnnotationPage:
        """Raises `InvalidPageToken`."""
        after = read_page_token(_LIST, token, _place) if token else _FIRST
        question = await self._question(run_id)
        # One more than is shown: then there is a next page.
        found = await self.annotations.page(question, user or LOCAL_USER, after, size + 1)
        shown = found[:size]
        if len(found) <= size:
            return AnnotationPage(shown, "")
        last = shown[-1]
        return AnnotationPage(shown, write_page_token(_LIST, *last.key, last.user))

    async def agreement(self, run_id: str, user: str) -> Annotated:
        question = await self._question(run_id)
        counts = await self.annotations.counts(question, user or LOCAL_USER)
        labels = await self.annotations.labels(question)
        raters = await asyncio.to_thread(
            agreement_of, labels, question.labels, is_ordinal=question.is_of_numbers
        )
        return Annotated(question, counts, raters)

    async def _question(self, run_id: str) -> Question:
        question = question_of((await self.records.get(run_id)).plan)
        if question.run_id != run_id:
            # Deleted, or of a project that the caller does not see: a suite of the caller's own can have the
            # id of any run as its name.
            await self.records.get(question.run_id)
        return question


def _place(parts: list[str]) -> AnnotationPlace:
    sample, rollout, user = parts
    return int(sample), int(rollout), user
