"""Used budgets of rollouts in Postgres."""

from collections.abc import Sequence
from functools import reduce

import asyncpg

from proctor.values.rollout import BudgetUse, EarlierUse
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.scheduler.rollouts.budgets.budget_report import MAX_EXECUTIONS, BudgetReport
from services.scheduler.runs.lifecycle.postgres_rows import from_json, to_json


class PostgresBudgets:
    def __init__(self, session: PostgresSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def record(self, report: BudgetReport) -> EarlierUse | None:
        """Replaces what the execution reported before.

        None, and nothing is recorded, where the run is gone, over or in another epoch, or the rollout has
        `MAX_EXECUTIONS` others.
        """
        used = report.used
        rows = await self._session.fetch(
            "record_budget_use",
            run_id=report.run_id,
            epoch=report.epoch,
            sample=report.sample,
            rollout=report.rollout,
            execution=report.execution,
            started_at=self._clock.now(),
            agent_steps=used.agent_steps,
            usage=to_json(used.usage),
            seconds=used.seconds,
            is_left=report.is_left,
            max_executions=MAX_EXECUTIONS,
        )
        return _earlier(rows) if rows else None


def _earlier(rows: Sequence[asyncpg.Record]) -> EarlierUse:
    """Rows of executions; one without, where there was none before."""
    others = [row for row in rows if row["execution"] is not None]
    lost = [_use(row) for row in others if not row["is_left"]]
    left = [_use(row).usage for row in others if row["is_left"]]
    return EarlierUse(
        used=reduce(BudgetUse.plus, lost, BudgetUse()),
        executions=len(lost),
        price=from_json(ModelPrice, rows[0]["price"]),
        left=reduce(TokenUsage.plus, left, TokenUsage()),
    )


def _use(row: asyncpg.Record) -> BudgetUse:
    return BudgetUse(row["agent_steps"], from_json(TokenUsage, row["usage"]) or TokenUsage(), row["seconds"])
