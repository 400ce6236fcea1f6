"""Outcomes in Postgres: one statement records a batch, counts it and refuses what comes too late."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime

import asyncpg
import numpy as np
import orjson

from proctor.values.outcome import Answer, ChoiceScore, Failure, FailureClass, Outcome, OutcomeStatus
from proctor.values.usage import USAGE_NAMES, Timing, TokenUsage
from services.common.clock import Clock
from services.common.postgres import PostgresSession, PostgresTransaction, storable, storable_json
from services.results.outcomes.outcome import BEFORE_ALL, OutcomeKey, ScoredOutcome, times_of, tokens_of
from services.results.outcomes.ports import MAX_SOURCES, AnswerSource, OutcomePage
from services.results.outcomes.timing_summary import Percentiles, TimeBucket, TimingSummary
from services.results.runs.run_plan import RunRecord
from services.results.scoring.choice_metrics import has_logprobs_only
from services.results.scoring.score import StoredValue
from services.results.statistics.columns import ScoreChunk

# Bounds the time of one statement, and the scores that are in memory at a time.
CHUNK_OUTCOMES = 50_000
# Short statements: locks and write-ahead log of a million rows would delay those who record.
DELETED_AT_A_TIME = 5000
NO_CHOICES = "[]"
NO_SCORES = "{}"
NO_ANSWER = Answer()
# Their names are those of columns.
_TIMING = tuple(each.name for each in fields(Timing))


class PostgresOutcomes:
    def __init__(self, session: PostgresSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def record(self, outcomes: Sequence[ScoredOutcome]) -> int:
        runs = sorted({(one.run_id, one.epoch) for one in outcomes})
        now = self._clock.now()
        on_gpus = [one for one in outcomes if one.outcome.gpu_seconds]
        written: int = await self._session.fetchval(
            "record_outcomes",
            run_ids=[run_id for run_id, _ in runs],
            epochs=[epoch for _, epoch in runs],
            outcomes=[_row(one, now) for one in outcomes],
            gpu_run_ids=[one.run_id for one in on_gpus],
            gpu_samples=[one.outcome.sample for one in on_gpus],
            gpu_rollouts=[one.outcome.rollout for one in on_gpus],
            gpu_seconds=[one.outcome.gpu_seconds for one in on_gpus],
        )
        return written

    async def delete(self, run_id: str) -> None:
        after: tuple[int, int] | None = BEFORE_ALL
        while after is not None:
            row = await self._session.fetchrow(
                "delete_outcomes", run_id=run_id, **after_key(after), limit=DELETED_AT_A_TIME
            )
            after = None if row is None else (row["sample"], row["rollout"])

    async def missing(self, run: RunRecord, rollout: int, window: range) -> list[int]:
        rows = await self._session.fetch(
            "list_missing",
            run_id=run.plan.run_id,
            epoch=run.epoch,
            rollout=rollout,
            first_sample=window.start,
            end_sample=window.stop,
        )
        return [row["sample"] for row in rows]

    async def page(self, page: OutcomePage) -> list[tuple[int, int]]:
        query = "list_outcomes" if page.status is None else "list_outcomes_of_status"
        rows = await self._session.fetch(
            query,
            run_id=page.run_id,
            **after_key(page.after),
            before_sample=page.before_sample,
            limit=page.page_size,
            **({} if page.status is None else {"status": page.status}),
        )
        return [(row["sample"], row["rollout"]) for row in rows]

    async def scores(self, run_id: str, window: range, metrics: Sequence[str]) -> AsyncIterator[ScoreChunk]:
        async for start, end in self._parts(run_id, window):
            rows = await self._session.fetch(
                "list_scores", run_id=run_id, first_sample=start, end_sample=end, metrics=metrics
            )
            if not rows or not rows[0]["samples"]:
                continue
            yield ScoreChunk(
                np.array(rows[0]["samples"], dtype=np.int64),
                np.array(rows[0]["rollouts"], dtype=np.int64),
                {row["metric"]: np.array(row["firsts"], dtype=np.float64) for row in rows},
                {row["metric"]: np.array(row["seconds"], dtype=np.float64) for row in rows},
            )

    async def stored_scores(
        self, run_id: str, window: range
    ) -> AsyncIterator[Sequence[tuple[int, Mapping[str, StoredValue]]]]:
        async for start, end in self._parts(run_id, window):
            rows = await self._session.fetch(
                "list_stored_scores", run_id=run_id, first_sample=start, end_sample=end
            )
            yield [(row["sample"], orjson.loads(row["scores"])) for row in rows]

    async def count_reused(self, run_id: str) -> int:
        reused: int = await self._session.fetchval("count_reused", run_id=run_id)
        return reused

    async def gpu_seconds(self, run_id: str) -> float:
        seconds: float | None = await self._session.fetchval("read_gpu_seconds", run_id=run_id)
        return seconds or 0.0

    async def answering_seconds(self, run_id: str) -> float:
        seconds: float = await self._session.fetchval("read_answering_seconds", run_id=run_id)
        return seconds

    async def time_buckets(
        self, run_id: str, window: range, width: float
    ) -> AsyncIterator[Sequence[TimeBucket]]:
        async for start, end in self._parts(run_id, window):
            rows = await self._session.fetch(
                "count_times", run_id=run_id, first_sample=start, end_sample=end, width=width
            )
            yield [TimeBucket(*row) for row in rows]

    async def _parts(self, run_id: str, window: range) -> AsyncIterator[tuple[int, int]]:
        """Windows of samples with some `CHUNK_OUTCOMES` outcomes each, so that statements are short."""
        rollouts = await self._session.fetchval("read_rollouts", run_id=run_id) or 1
        step = max(CHUNK_OUTCOMES // rollouts, 1)
        for start in range(window.start, window.stop, step):
            yield start, min(start + step, window.stop)

    async def timing(self, run_id: str) -> TimingSummary:
        rows = await self._session.fetch("summarize_timing", run_id=run_id)
        return TimingSummary(**{row["name"]: _percentiles(row) for row in rows})


def after_key(key: OutcomeKey) -> dict[str, int]:
    """Parameters of queries that go on behind an outcome."""
    return {"after_sample": key[0], "after_rollout": key[1]}


def _row(scored: ScoredOutcome, recorded_at: datetime) -> tuple[object, ...]:
    """All columns of the table in their order."""
    outcome, result = scored.outcome, scored.outcome.result
    failure = result if isinstance(result, Failure) else None
    answer = result if isinstance(result, Answer) else result.answer or NO_ANSWER
    return (
        scored.run_id,
        outcome.sample,
        outcome.rollout,
        scored.task_index,
        outcome.shard,
        scored.epoch,
        outcome.attempt,
        scored.status,
        failure.failure_class if failure else None,
        storable(failure.message) if failure else "",
        storable(answer.text),
        storable(answer.reasoning),
        storable(answer.finish_reason),
        _choices_json(answer),
        storable(scored.prediction),
        storable_json(orjson.dumps(scored.scores).decode()) if scored.scores else NO_SCORES,
        *tokens_of(outcome.usage),
        *times_of(outcome.timing),
        storable(answer.body_json),
        scored.is_reused,
        recorded_at,
    )


def _choices_json(answer: Answer) -> str:
    # Weights that are not numbers cannot be kept: they would come back as those of impossible choices.
    if not answer.choices or not has_logprobs_only(answer):
        return NO_CHOICES
    # Not finite becomes null.
    return orjson.dumps([(one.logprob, one.is_greedy, one.token_count) for one in answer.choices]).decode()


def scored_outcome(run_id: str, row: asyncpg.Record) -> ScoredOutcome:
    """Reads a row of the table."""
    return ScoredOutcome(
        run_id=run_id,
        epoch=row["epoch"],
        task_index=row["task_index"],
        outcome=Outcome(
            sample=row["sample"],
            rollout=row["rollout"],
            shard=row["shard"],
            attempt=row["attempt"],
            result=_result(row),
            usage=TokenUsage(*[row[name] for name in USAGE_NAMES]),
            timing=Timing(*[row[name] for name in _TIMING]),
        ),
        status=OutcomeStatus(row["status"]),
        prediction=row["prediction"],
        scores=orjson.loads(row["scores"]),
        is_reused=row["is_reused"],
        recorded_at=row["recorded_at"],
    )


def _result(row: asyncpg.Record) -> Answer | Failure:
    if row["failure_class"] is None:
        return _answer(row)
    failure_class = FailureClass(row["failure_class"])
    answer = _answer(row) if failure_class is FailureClass.SCORING else None
    return Failure(failure_class, row["failure_message"], answer)


def _answer(row: asyncpg.Record) -> Answer:
    choices = tuple(
        ChoiceScore(-math.inf if logprob is None else logprob, is_greedy, token_count)
        for logprob, is_greedy, token_count in orjson.loads(row["choices"])
    )
    return Answer(
        row["answer_text"], row["finish_reason"], choices, row["body_json"], reasoning=row["reasoning"]
    )


def _percentiles(row: asyncpg.Record) -> Percentiles:
    return Percentiles(row["n"], row["mean"], row["std"], *row["percentiles"])


class PostgresReuse:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def sources(
        self, run_id: str, task_index: int, environment: Mapping[str, str]
    ) -> Sequence[AnswerSource]:
        """Tasks answered by engines with the same environment, the latest first, at most `MAX_SOURCES`."""
        rows = await self._session.fetch(
            "list_same_requests",
            run_id=run_id,
            task_index=task_index,
            names=list(environment),
            values=list(environment.values()),
            limit=MAX_SOURCES,
        )
        return [AnswerSource(row["run_id"], row["task_index"]) for row in rows]

    async def reuse(self, run_id: str, epoch: int, task_index: int, source: AnswerSource) -> int:
        """Copies answers to the same samples and rollouts that the run lacks; returns how many it copied.

        Of equal samples the n-th has the n-th answer, or a spare one where that failed; none is copied twice.
        With their counts, in one transaction. A frozen run, or one in another epoch, gets none.
        """

        async def reuse(transaction: PostgresTransaction) -> int:
            await transaction.execute("join_by_hash")
            reused: int = await transaction.fetchval(
                "reuse_answers",
                run_id=run_id,
                epoch=epoch,
                task_index=task_index,
                source_run_id=source.run_id,
                source_task_index=source.task_index,
            )
            return reused

        return await self._session.run(reuse)
