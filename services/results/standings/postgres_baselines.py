"""Baselines in Postgres: of sample sets, and of the suites of closed runs."""

import hashlib
from contextlib import suppress

import asyncpg

from proctor.values.scoring import ScoringMethod
from services.common.postgres import PostgresSession
from services.results.runs.postgres import SCORING
from services.results.runs.run_plan import PlannedTask
from services.results.standings.baseline import TaskBaselines
from services.results.standings.json_standings import (
    baselines_to_json,
    task_baselines_from_json,
)
from services.results.standings.standing import SuiteBaselines


class PostgresBaselines:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def runs_without(self, most: int) -> list[str]:
        rows = await self._session.fetch("list_runs_without_baselines", most)
        return [row["run_id"] for row in rows]

    async def keep_for_run(self, run_id: str, baselines: SuiteBaselines) -> None:
        await self._session.fetch("keep_run_baselines", run_id, baselines_to_json(baselines))

    async def find(self, task: PlannedTask, method: ScoringMethod | None) -> TaskBaselines | None:
        key = (task.sample_set_id, _scoring_digest(task, method))
        row = await self._session.fetchrow("read_task_baselines", *key)
        return None if row is None else task_baselines_from_json(row["baselines"])

    async def keep(self, task: PlannedTask, method: ScoringMethod | None, baselines: TaskBaselines) -> None:
        key = (task.sample_set_id, _scoring_digest(task, method))
        # The set may have gone with its last run meanwhile.
        with suppress(asyncpg.ForeignKeyViolationError):
            await self._session.fetch("add_task_baselines", *key, baselines_to_json(baselines))


def _scoring_digest(task: PlannedTask, method: ScoringMethod | None) -> bytes:
    return hashlib.sha256(f"{method} {SCORING.dump_json(task.scoring).decode()}".encode()).digest()
