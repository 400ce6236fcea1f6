"""Recorded outcomes as they are looked through, in Postgres."""

from collections.abc import Mapping, Sequence, Set

from services.common.postgres import PostgresSession
from services.results.answers.answer_match import AnswerMatch
from services.results.answers.ports import KeyScan, Matched
from services.results.answers.same_samples import Placed, SamePlace
from services.results.answers.tool_calls import called
from services.results.outcomes.outcome import OutcomeKey, ScoredOutcome
from services.results.outcomes.postgres import scored_outcome


class PostgresAnswers:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def keys(self, scan: KeyScan) -> list[OutcomeKey]:
        name = "list_golden_keys" if scan.is_golden else "list_outcome_keys"
        rows = await self._session.fetch(name, scan.run_id, *scan.after, scan.before_sample, scan.most)
        return [(row["sample"], row["rollout"]) for row in rows]

    async def match(
        self, run_id: str, keys: Sequence[OutcomeKey], wanted: AnswerMatch, most_bytes: int
    ) -> Matched:
        chosen = wanted.filter
        row = await self._session.fetchrow(
            "match_outcomes",
            run_id,
            *key_columns(keys),
            most_bytes,
            wanted.status,
            chosen.row_id,
            chosen.text,
            wanted.metrics,
            chosen.min_score,
            chosen.max_score,
            chosen.min_characters,
            chosen.max_characters,
            chosen.is_golden,
        )
        return Matched(row["places"], row["judged"]) if row else Matched((), 0)

    async def weights(self, run_id: str, keys: Sequence[OutcomeKey]) -> Mapping[OutcomeKey, int]:
        rows = await self._session.fetch("weigh_outcomes", run_id, *key_columns(keys))
        return {(row["sample"], row["rollout"]): row["bytes"] for row in rows}

    async def read(self, run_id: str, keys: Sequence[OutcomeKey]) -> list[ScoredOutcome]:
        rows = await self._session.fetch("read_outcomes", run_id, *key_columns(keys))
        return [scored_outcome(run_id, row["outcome"]) for row in rows]

    async def digests(self, run_id: str, samples: Sequence[int]) -> Mapping[int, str | None]:
        rows = await self._session.fetch("digest_answers", run_id, samples)
        return {row["sample"]: called(row["body_json"]) or row["digest"] for row in rows}

    async def golden(self, run_id: str, keys: Sequence[OutcomeKey]) -> Set[OutcomeKey]:
        rows = await self._session.fetch("find_golden", run_id, *key_columns(keys))
        return {(row["sample"], row["rollout"]) for row in rows}


class PostgresSameSamples:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def at_same_place(self, set_id: str, other_id: str, window: range) -> Mapping[int, SamePlace]:
        rows = await self._session.fetch("list_same_rows", set_id, other_id, window.start, window.stop)
        return {
            row["position"]: SamePlace(row["digest"], row["is_same_sample"], row["is_same_row"])
            for row in rows
        }

    async def placed(self, set_id: str, digests: Sequence[bytes], most_of_each: int) -> list[Placed]:
        rows = await self._session.fetch("list_samples_of_digests", set_id, digests, most_of_each)
        return [Placed(row["position"], row["digest"], row["name"]) for row in rows]

    async def has_any(self, set_id: str, other_id: str) -> bool:
        row = await self._session.fetchrow("has_same_sample", set_id, other_id)
        return bool(row and row["is_found"])


def key_columns(keys: Sequence[OutcomeKey]) -> tuple[list[int], list[int]]:
    """Samples and rollouts."""
    return [sample for sample, _ in keys], [rollout for _, rollout in keys]
