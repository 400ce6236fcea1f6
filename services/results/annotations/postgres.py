"""Annotations in Postgres."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import asyncpg

from services.common.postgres import PostgresSession
from services.results.annotations.annotation import Annotation, AnnotationCounts
from services.results.annotations.question import Question, VerdictPlace
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.errors import RecordNotFound

# An answer and a person: annotations are listed in this order.
AnnotationPlace = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """The mean verdict of a judging run on an answer, 0 to 1, and the answer's length in characters."""

    run_id: str
    key: OutcomeKey
    verdict: float
    characters: int


class PostgresAnnotations:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def find_unannotated(
        self, question: Question, user: str, raters: int, *, is_disagreement_first: bool
    ) -> OutcomeKey | None:
        """The next answer that the user and `raters` people have not annotated; None: none is left."""
        asked = {**_of(question), "username": user, "raters": raters}
        if is_disagreement_first:
            judging = await self.judging_runs(question)
            row = await self._session.fetchrow("find_disputed", name=question.name, run_ids=judging, **asked)
        else:
            row = await self._session.fetchrow("find_unannotated", **asked)
        return (row["sample"], row["rollout"]) if row else None

    async def store(
        self, question: Question, key: OutcomeKey, user: str, *, label: str, comment: str
    ) -> bool:
        """False where there is no such answer. Raises RecordNotFound where the run is deleted meanwhile."""
        try:
            row = await self._session.fetchrow(
                "set_annotation",
                **_of(question),
                sample=key[0],
                rollout=key[1],
                username=user,
                label=label,
                score=question.labels.get(label),
                comment=comment,
            )
        except asyncpg.ForeignKeyViolationError as error:
            raise RecordNotFound(run_id=question.run_id) from error
        return row is not None

    async def page(
        self, question: Question, user: str, after: AnnotationPlace, limit: int
    ) -> Sequence[Annotation]:
        """Those that the user may see: own ones, and those of answers that two people have annotated."""
        rows = await self._session.fetch(
            "list_annotations",
            **_of(question),
            username=user,
            after_sample=after[0],
            after_rollout=after[1],
            after_username=after[2],
            limit=limit,
        )
        return [
            Annotation(
                (row["sample"], row["rollout"]),
                row["username"],
                row["label"],
                row["score"],
                row["comment"],
                row["annotated_at"],
            )
            for row in rows
        ]

    async def labels(self, question: Question) -> Sequence[tuple[OutcomeKey, str, str]]:
        """Answer, person and label."""
        rows = await self._session.fetch("list_annotated_labels", **_of(question))
        return [((row["sample"], row["rollout"]), row["username"], row["label"]) for row in rows]

    async def drawn_scores(self, question: Question) -> Mapping[OutcomeKey, float]:
        """Mean scores of the answers that are a fair sample of the run's."""
        rows = await self._session.fetch("list_drawn_scores", **_of(question))
        return {(row["sample"], row["rollout"]): row["score"] for row in rows}

    async def judging_runs(self, question: Question) -> Sequence[str]:
        """Completed runs of judges by the name of the question, newest first; their scale may be another."""
        rows = await self._session.fetch(
            "list_judging_runs", judged_run_id=question.run_id, name=question.name
        )
        return [str(row["run_id"]) for row in rows]

    async def verdicts(self, question: Question, run_ids: Sequence[str]) -> Sequence[JudgeVerdict]:
        rows = await self._session.fetch(
            "list_verdicts_of_judges", run_ids=run_ids, judged_run_id=question.run_id
        )
        return [
            JudgeVerdict(
                str(row["run_id"]), (row["sample"], row["rollout"]), row["verdict"], row["characters"]
            )
            for row in rows
        ]

    async def judges(self, run_id: str, limit: int) -> Sequence[str]:
        """Completed runs whose benchmark is the run, newest first: its judges, and suites called as it is."""
        rows = await self._session.fetch("list_judges", judged_run_id=run_id, limit=limit)
        return [str(row["run_id"]) for row in rows]

    async def places(self, run_ids: Sequence[str], keys: Sequence[OutcomeKey]) -> Sequence[VerdictPlace]:
        """Samples of judging runs that ask about some answers, by judging run and sample."""
        rows = await self._session.fetch(
            "list_verdict_places",
            run_ids=run_ids,
            samples=[sample for sample, _ in keys],
            rollouts=[rollout for _, rollout in keys],
        )
        return [
            VerdictPlace(
                str(row["run_id"]), (row["sample"], row["rollout"]), row["judging_sample"], row["place"]
            )
            for row in rows
        ]

    async def settled_scores(
        self, run_id: str, questions: Sequence[str]
    ) -> Mapping[tuple[str, OutcomeKey], float]:
        """Mean scores by the key of a question and the answer, where two people or more have annotated it."""
        rows = await self._session.fetch("list_settled_scores", run_id=run_id, questions=questions)
        return {(row["question"], (row["sample"], row["rollout"])): row["score"] for row in rows}

    async def counts(self, question: Question, user: str) -> AnnotationCounts:
        row = await self._session.fetchrow("count_annotations", **_of(question), username=user)
        assert row
        return AnnotationCounts(**row)


def _of(question: Question) -> dict[str, str]:
    return {"run_id": question.run_id, "question": question.key}
