"""Outcomes in Postgres: one statement records a batch, counts it and rejects what comes too late."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence

import asyncpg
import orjson

from services.results.outcomes.outcome import (
    BEFORE_ALL,
    Failure,
    ModelAnswer,
    Outcome,
    ScoredOutcome,
    ScoredRow,
)
from services.results.outcomes.ports import MOST_SOURCES, OutcomePage, Source
from services.results.outcomes.timing_summary import Percentiles, TimingSummary
from services.results.postgres_session import PostgresSession, storable
from services.results.runs.run_plan import RunRecord
from services.results.scoring.answer import Answer
from services.results.values import FailureClass, OutcomeStatus, Timing, TokenUsage

CHUNK_SAMPLES = 1000
DELETED_AT_A_TIME = 5000
NO_CHOICES = "[]"
NO_SCORES = "{}"
NO_ANSWER = ("", "", NO_CHOICES)
NO_BODY = ""


class PostgresOutcomes:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def record(self, outcomes: Sequence[ScoredOutcome]) -> int:
        runs = sorted({(one.run_id, one.epoch) for one in outcomes})
        places = {run: place for place, run in enumerate(runs, start=1)}
        columns = zip(*[_row(places[one.run_id, one.epoch], one) for one in outcomes], strict=True)
        run_ids, epochs = [run_id for run_id, _ in runs], [epoch for _, epoch in runs]
        row = await self._session.fetchrow("record_outcomes", run_ids, epochs, *columns)
        return 0 if row is None else int(row["written"])

    async def delete(self, run_id: str) -> None:
        after: tuple[int, int] | None = BEFORE_ALL
        while after is not None:
            row = await self._session.fetchrow("delete_outcomes", run_id, *after, DELETED_AT_A_TIME)
            after = None if row is None else (row["sample"], row["rollout"])

    async def missing(self, run: RunRecord, rollout: int, window: range) -> list[int]:
        rows = await self._session.fetch(
            "list_missing", run.plan.run_id, run.epoch, rollout, window.start, window.stop
        )
        return [row["sample"] for row in rows]

    async def page(self, page: OutcomePage) -> list[tuple[int, int]]:
        arguments = (page.run_id, *page.after, page.before_sample, page.page_size)
        if page.status is None:
            rows = await self._session.fetch("list_outcomes", *arguments)
        else:
            rows = await self._session.fetch("list_outcomes_of_status", *arguments, page.status)
        return [(row["sample"], row["rollout"]) for row in rows]

    async def scores(self, run_id: str, window: range) -> AsyncIterator[Sequence[ScoredRow]]:
        for start in range(window.start, window.stop, CHUNK_SAMPLES):
            end = min(start + CHUNK_SAMPLES, window.stop)
            rows = await self._session.fetch("read_scores", run_id, start, end)
            yield [(row["sample"], row["rollout"], orjson.loads(row["scores"])) for row in rows]

    async def count_reused(self, run_id: str) -> int:
        row = await self._session.fetchrow("count_reused", run_id)
        return row["reused"] if row else 0

    async def timing(self, run_id: str) -> TimingSummary:
        rows = await self._session.fetch("summarize_timing", run_id)
        return TimingSummary(**{row["name"]: _percentiles(row) for row in rows})


def _row(place: int, scored: ScoredOutcome) -> tuple[object, ...]:
    """In the order of the columns of `record_outcomes`."""
    outcome = scored.outcome
    usage, timing = outcome.usage, outcome.timing
    return (
        place,
        outcome.sample,
        outcome.rollout,
        scored.task_index,
        outcome.shard,
        outcome.attempt,
        scored.status,
        *_result_columns(outcome.result),
        storable(scored.prediction),
        orjson.dumps(scored.scores).decode() if scored.scores else NO_SCORES,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        timing.total_seconds,
        timing.queue_seconds,
        timing.first_token_seconds,
        timing.between_tokens_seconds,
        storable(outcome.answer.body_json) if outcome.answer else NO_BODY,
    )


def _result_columns(result: ModelAnswer | Failure) -> tuple[int, str, str, str, str]:
    """Failure class, failure message, text, finish reason, choices."""
    if isinstance(result, Failure):
        said = _answer_columns(result.answer) if result.answer else NO_ANSWER
        return result.failure_class, storable(result.message), *said
    return 0, "", *_answer_columns(result)


def _answer_columns(said: ModelAnswer) -> tuple[str, str, str]:
    return storable(said.answer.text), storable(said.finish_reason), _choices_json(said)


def _choices_json(result: ModelAnswer) -> str:
    answer = result.answer
    # Weights that are no numbers cannot be kept: they would come back as those of impossible choices.
    if not answer.choice_logprobs or not answer.has_logprobs_only:
        return NO_CHOICES
    columns = zip(answer.choice_logprobs, answer.choice_is_greedy, result.choice_token_counts, strict=True)
    return orjson.dumps(list(columns)).decode()  # not finite becomes null


def scored_outcome(run_id: str, row: asyncpg.Record) -> ScoredOutcome:
    outcome = Outcome(
        row["sample"], row["rollout"], row["shard"], row["attempt"], _result(row), _usage(row), _timing(row)
    )
    status, scores = OutcomeStatus(row["status"]), orjson.loads(row["scores"])
    return ScoredOutcome(
        run_id,
        row["epoch"],
        row["task_index"],
        outcome,
        status,
        row["prediction"],
        scores,
        row["is_reused"],
    )


def _result(row: asyncpg.Record) -> ModelAnswer | Failure:
    if not row["failure_class"]:
        return _answer(row)
    failure_class = FailureClass(row["failure_class"])
    answer = _answer(row) if failure_class is FailureClass.SCORING else None
    return Failure(failure_class, row["failure_message"], answer)


def _answer(row: asyncpg.Record) -> ModelAnswer:
    choices = orjson.loads(row["choices"])
    answer = Answer(
        row["answer_text"],
        tuple(-math.inf if logprob is None else logprob for logprob, _, _ in choices),
        tuple(is_greedy for _, is_greedy, _ in choices),
    )
    return ModelAnswer(
        answer, row["finish_reason"], tuple(tokens for _, _, tokens in choices), row["body_json"]
    )


def _usage(row: asyncpg.Record) -> TokenUsage:
    return TokenUsage(
        row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"], row["reasoning_tokens"]
    )


def _timing(row: asyncpg.Record) -> Timing:
    return Timing(
        row["total_seconds"],
        row["queue_seconds"],
        row["first_token_seconds"],
        row["between_tokens_seconds"],
    )


def _percentiles(row: asyncpg.Record) -> Percentiles:
    return Percentiles(row["n"], row["mean"], row["std"], *row["percentiles"])


class PostgresReuse:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def sources(self, run_id: str, task_index: int, environment: Mapping[str, str]) -> Sequence[Source]:
        said = list(environment), list(environment.values())
        rows = await self._session.fetch("find_same_requests", run_id, task_index, *said, MOST_SOURCES)
        return [Source(row["run_id"], row["task_index"]) for row in rows]

    async def take(self, run_id: str, epoch: int, task_index: int, source: Source) -> int:
        async def once() -> int:
            async with self._session.transaction() as transaction:
                await transaction.execute("join_by_hash")
                row = await transaction.fetchrow(
                    "take_answers", run_id, epoch, task_index, source.run_id, source.task_index
                )
                return row["taken"] if row else 0

        return await self._session.repeat(once)
