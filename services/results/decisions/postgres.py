"""Outcomes of named samples in Postgres."""

from collections.abc import Mapping, Sequence

import orjson

from services.common.postgres import PostgresSession
from services.results.decisions.answered_pairs import AnsweredSample
from services.results.scoring.score import ScoreValue


class PostgresAnsweredSamples:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def read(
        self, run_id: str, samples: Sequence[int], metrics: Sequence[str]
    ) -> Mapping[int, AnsweredSample]:
        rows = await self._session.fetch(
            "list_answered_samples", run_id=run_id, samples=list(samples), metrics=list(metrics)
        )
        return {
            row["sample"]: AnsweredSample(row["task_index"], row["outcomes"], _scores(row["scores"]))
            for row in rows
        }


def _scores(text: str | None) -> tuple[ScoreValue, ...]:
    """Few answers: one for each rollout."""
    if text is None:
        return ()
    return tuple(tuple(score) if isinstance(score, list) else score for score in orjson.loads(f"[{text}]"))
