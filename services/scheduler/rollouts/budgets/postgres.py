"""Used budgets of rollouts in Postgres."""

from dataclasses import astuple, fields

import asyncpg

from proctor.values.rollout import BudgetUse
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.scheduler.rollouts.budgets.budget_report import MAX_EXECUTIONS, BudgetReport, EarlierUse
from services.scheduler.runs.lifecycle.postgres_rows import from_json


class PostgresBudgets:
    def __init__(self, session: PostgresSession, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def record(self, report: BudgetReport) -> EarlierUse | None:
        used = report.used
        rows = await self._session.fetch(
            "record_budget_use",
            report.run_id,
            report.epoch,
            report.sample,
            report.rollout,
            report.execution,
            self._clock.now(),
            used.steps,
            *astuple(used.usage),
            used.seconds,
            MAX_EXECUTIONS,
        )
        return _earlier(rows[0]) if rows else None


def _earlier(row: asyncpg.Record) -> EarlierUse:
    usage = TokenUsage(*(row[count.name] for count in fields(TokenUsage)))
    return EarlierUse(
        used=BudgetUse(row["steps"], usage, row["seconds"]),
        executions=row["executions"],
        price=from_json(ModelPrice, row["price"]),
    )
