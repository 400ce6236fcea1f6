"""Outcomes beside their samples, chunk by chunk, as exports want them."""

from collections.abc import AsyncIterator, Sequence

import asyncpg

from services.common.postgres import PostgresSession
from services.results.outcomes.outcome import ListedOutcome
from services.results.outcomes.postgres import scored_outcome
from services.results.runs.run_plan import RunPlan
from services.results.samples.postgres import sample_from_row

MOST_ROWS = 1000
FIRST_ROWS = 100
CHUNK_BYTES = 4 * 1024 * 1024


class PostgresExports:
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
                plan.run_id,
                *after,
                task.sample_set_id,
                task.first_sample,
                task.end_sample,
                size,
                has_docs,
                CHUNK_BYTES,
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
    return max(1, min(MOST_ROWS, CHUNK_BYTES // per_row))


def _weight(row: asyncpg.Record) -> int:
    texts = (row["prompt_text"], row["prompt_messages"], row["doc_json"], row["outcome"]["answer_text"])
    return sum(len(text or "") for text in texts) + sum(map(len, row["choices"]))
