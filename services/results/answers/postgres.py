"""Recorded answers in Postgres: searched, read beside their samples, and marked."""

import hashlib
import math
from collections.abc import AsyncIterator, Mapping, Sequence

import asyncpg

from proctor.values.outcome import Answer
from proctor.values.reasoning.answers import with_reasoning_apart
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.answers.errors import FailureNotMarked, OutcomeNotFound
from services.results.answers.marks import GoldenAnswer, Mark, MarkChange, MarkCounts, MarkedVerdict
from services.results.answers.outcome_filter import OutcomeMatch
from services.results.answers.ports import KeyScan, Matched, SortedKey, SortedScan
from services.results.answers.side_by_side import PositionedSample, SamePosition, called
from services.results.outcomes.outcome import ListedOutcome, OutcomeKey, ScoredOutcome
from services.results.outcomes.postgres import after_key, scored_outcome
from services.results.runs.errors import RecordNotFound
from services.results.runs.run_plan import RunPlan
from services.results.samples.postgres import sample_from_row

MAX_ROWS = 1000
# The size of these answers decides how many are read next.
FIRST_ROWS = 100
CHUNK_BYTES = 4 * 1024 * 1024
# As digest_answers trims a text.
_SPACE = " \t\n\r\v\f\u0085\u00a0\u2028\u2029\u3000"


class PostgresAnswers:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def keys(self, scan: KeyScan) -> list[OutcomeKey]:
        page = {**after_key(scan.after), "before_sample": scan.before_sample, "limit": scan.limit}
        if scan.mark is None:
            rows = await self._session.fetch("list_outcome_keys", run_id=scan.run_id, **page)
        else:
            rows = await self._session.fetch("list_marked_keys", run_id=scan.run_id, mark=scan.mark, **page)
        return [(row["sample"], row["rollout"]) for row in rows]

    async def sorted_keys(self, scan: SortedScan, wanted: OutcomeMatch) -> list[SortedKey]:
        chosen, (value, after) = wanted.filter, scan.after or (-math.inf, (0, 0))
        rows = await self._session.fetch(
            "sort_outcomes",
            run_id=scan.run_id,
            first_sample=scan.samples.start,
            end_sample=scan.samples.stop,
            sort=scan.sort.value,
            sign=-1.0 if scan.sort.is_descending else 1.0,
            after_value=value,
            **after_key(after),
            limit=scan.limit,
            status=wanted.status,
            failure_class=chosen.failure_class,
            metrics=wanted.metrics,
            min_score=chosen.min_score,
            max_score=chosen.max_score,
            min_characters=chosen.min_characters,
            max_characters=chosen.max_characters,
            mark=chosen.mark,
        )
        return [(row["value"], (row["sample"], row["rollout"])) for row in rows]

    async def match(
        self, run_id: str, keys: Sequence[OutcomeKey], wanted: OutcomeMatch, max_bytes: int
    ) -> Matched:
        chosen = wanted.filter
        row = await self._session.fetchrow(
            "match_outcomes",
            run_id=run_id,
            **key_columns(keys),
            max_bytes=max_bytes,
            status=wanted.status,
            row_id=chosen.row_id,
            text=chosen.text,
            metrics=wanted.metrics,
            min_score=chosen.min_score,
            max_score=chosen.max_score,
            min_characters=chosen.min_characters,
            max_characters=chosen.max_characters,
            mark=chosen.mark,
            failure_class=chosen.failure_class,
        )
        return Matched(row["indexes"], row["judged"]) if row else Matched((), 0)

    async def weights(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, int]:
        rows = await self._session.fetch("weigh_outcomes", run_id=run_id, **key_columns(keys))
        return {(row["sample"], row["rollout"]): row["bytes"] for row in rows}

    async def read(
        self, run_id: str, keys: Sequence[OutcomeKey], *, is_brief: bool = False
    ) -> list[ScoredOutcome]:
        if is_brief:
            briefs = await self._session.fetch("list_brief_outcomes", run_id=run_id, **key_columns(keys))
            return [scored_outcome(run_id, row) for row in briefs]
        rows = await self._session.fetch("list_whole_outcomes", run_id=run_id, **key_columns(keys))
        return [scored_outcome(run_id, row["outcome"]) for row in rows]

    async def digests(self, run_id: str, samples: Sequence[int]) -> Mapping[int, str | None]:
        rows = await self._session.fetch("digest_answers", run_id=run_id, samples=samples)
        return {row["sample"]: _digest(row) for row in rows}

    async def marks(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, Mark]:
        rows = await self._session.fetch("list_marks", run_id=run_id, **key_columns(keys))
        return {(row["sample"], row["rollout"]): Mark(row["mark"]) for row in rows}


def _digest(row: asyncpg.Record) -> str | None:
    """Of what an answer says without its reasoning."""
    if row["marked_text"] is None:
        return called(row["body_json"]) or row["digest"]
    apart = with_reasoning_apart(Answer(row["marked_text"], row["finish_reason"]))
    text = (apart.text or row["prediction"]).strip(_SPACE)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


class PostgresSameSamples:
    """Finds the samples of one set in another."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def at_same_position(
        self, sample_set_id: str, other_id: str, window: range
    ) -> Mapping[int, SamePosition]:
        """Samples by position: what each is, and whether the other set has it there."""
        rows = await self._session.fetch(
            "list_same_rows",
            sample_set_id=sample_set_id,
            other_id=other_id,
            first_position=window.start,
            end_position=window.stop,
        )
        return {
            row["position"]: SamePosition(row["digest"], row["is_same_sample"], row["is_same_row"])
            for row in rows
        }

    async def by_digest(
        self, sample_set_id: str, digests: Sequence[bytes], max_of_each: int
    ) -> list[PositionedSample]:
        """Positions of some samples in a set; of each no more than so many."""
        rows = await self._session.fetch(
            "list_by_digest", sample_set_id=sample_set_id, digests=digests, max_of_each=max_of_each
        )
        return [PositionedSample(row["position"], row["digest"], row["name"]) for row in rows]

    async def has_any(self, sample_set_id: str, other_id: str) -> bool:
        """Whether the sets have a sample in common."""
        row = await self._session.fetchrow("has_same_sample", sample_set_id=sample_set_id, other_id=other_id)
        return bool(row and row["is_found"])


def key_columns(keys: Sequence[OutcomeKey]) -> dict[str, list[int]]:
    return {"samples": [sample for sample, _ in keys], "rollouts": [rollout for _, rollout in keys]}


class PostgresMarks:
    """Keeps marks on answers."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def positions(self, sample_set_id: str, row_ids: Sequence[str]) -> Mapping[str, int]:
        """Positions of rows by their ids; unknown ids are left out."""
        rows = await self._session.fetch("list_row_positions", sample_set_id=sample_set_id, row_ids=row_ids)
        return {row["row_id"]: row["position"] for row in rows}

    async def mark(self, run_id: str, keys: Sequence[OutcomeKey], mark: Mark | None, user: str) -> MarkCounts:
        """Sets the mark of all answers, or fails and sets none; None removes marks. Returns those of the run.

        Answers do not change, so they are still as checked when they are marked. Raises OutcomeNotFound,
        FailureNotMarked, and RecordNotFound where the run is deleted meanwhile.
        """

        async def once() -> MarkCounts:
            async with self._session.transaction() as transaction:
                await _check(transaction, run_id, keys, are_marked=mark is not None)
                if mark is None:
                    await transaction.execute(
                        "delete_marks", run_id=run_id, **key_columns(keys), username=user
                    )
                else:
                    await transaction.execute(
                        "set_marks", run_id=run_id, **key_columns(keys), mark=mark, username=user
                    )
                return await _count(transaction, run_id)

        try:
            return await self._session.repeat(once)
        except asyncpg.ForeignKeyViolationError as error:
            raise RecordNotFound(run_id=run_id) from error

    async def changes(self, run_id: str, size: int, before: int | None) -> list[MarkChange]:
        """Changes of a run's marks, latest first; only those with a number below `before`."""
        rows = await self._session.fetch(
            "list_mark_changes", run_id=run_id, before_change_id=before, limit=size
        )
        return [
            MarkChange(
                row["change_id"],
                (row["sample"], row["rollout"]),
                Mark(row["mark"]) if row["mark"] else None,
                row["username"],
                row["changed_at"],
            )
            for row in rows
        ]

    async def verdicts(self, run_id: str, judged_run_id: str, metric: str) -> list[MarkedVerdict]:
        """Verdicts of a judging run that could be read."""
        rows = await self._session.fetch(
            "list_verdicts", run_id=run_id, judged_run_id=judged_run_id, metric=metric
        )
        return [
            MarkedVerdict(
                (row["sample"], row["rollout"]), row["verdict"], Mark(row["mark"]) if row["mark"] else None
            )
            for row in rows
        ]

    async def golden_page(self, run_id: str, after: OutcomeKey, limit: int) -> list[GoldenAnswer]:
        """Golden answers of a run by sample and rollout."""
        rows = await self._session.fetch(
            "list_golden_answers", run_id=run_id, **after_key(after), limit=limit
        )
        return [
            GoldenAnswer((row["sample"], row["rollout"]), row["marked_at"], row["digest"], row["name"])
            for row in rows
        ]


async def _check(
    transaction: PostgresTransaction, run_id: str, keys: Sequence[OutcomeKey], *, are_marked: bool
) -> None:
    """A mark may be taken off whatever was marked."""
    row = await transaction.fetchrow("find_unmarkable", run_id=run_id, **key_columns(keys))
    if row is None or (row["is_failure"] and not are_marked):
        return
    error = FailureNotMarked if row["is_failure"] else OutcomeNotFound
    raise error(run_id=run_id, sample=row["sample"], rollout=row["rollout"])


async def _count(transaction: PostgresTransaction, run_id: str) -> MarkCounts:
    row = await transaction.fetchrow("count_marks", run_id=run_id)
    assert row
    return MarkCounts(row["golden"], row["wrong"])


class PostgresListedOutcomes:
    """Pages by key and no cursor: a slow reader keeps no transaction open."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def chunks(
        self, plan: RunPlan, task_index: int, *, has_docs: bool
    ) -> AsyncIterator[Sequence[ListedOutcome]]:
        """Heavy answers come a few at a time; so do samples: a chunk is as large as the last one suggests."""
        task = plan.tasks[task_index]
        after, size = (task.first_sample, -1), FIRST_ROWS
        while True:
            rows = await self._session.fetch(
                "export_outcomes",
                run_id=plan.run_id,
                **after_key(after),
                sample_set_id=task.sample_set_id,
                first_sample=task.first_sample,
                end_sample=task.end_sample,
                limit=size,
                has_docs=has_docs,
                max_bytes=CHUNK_BYTES,
            )
            if not rows:
                return
            yield [_listed(plan, task_index, row) for row in rows]
            last = rows[-1]["outcome"]
            after = (last["sample"], last["rollout"])
            size = _next_size(rows)


def _listed(plan: RunPlan, task_index: int, row: asyncpg.Record) -> ListedOutcome:
    sample = sample_from_row(row, row["doc_json"])
    return ListedOutcome(plan.tasks[task_index], sample, scored_outcome(plan.run_id, row["outcome"]))


def _next_size(rows: Sequence[asyncpg.Record]) -> int:
    per_row = max(1, sum(map(_weight, rows)) // len(rows))
    return max(1, min(MAX_ROWS, CHUNK_BYTES // per_row))


def _weight(row: asyncpg.Record) -> int:
    texts = (row["prompt_text"], row["prompt_messages"], row["doc_json"], row["outcome"]["answer_text"])
    return sum(len(text or "") for text in texts) + sum(map(len, row["choices"]))
