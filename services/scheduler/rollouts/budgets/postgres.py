"""Used budgets of rollouts in Postgres, and the tokens among them that no outcome counts."""

from collections.abc import Sequence
from functools import reduce

import asyncpg

from proctor.values.rollout import BudgetUse, EarlierUse
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.scheduler.planning.shard import MissingSample, Shard
from services.scheduler.rollouts.budgets.budget_report import MAX_EXECUTIONS, BudgetReport
from services.scheduler.runs.lifecycle.postgres_rows import from_json, to_json
from services.scheduler.runs.lifecycle.run import Run


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
            shard=report.shard,
            is_resting=report.is_resting,
            max_executions=MAX_EXECUTIONS,
        )
        return _earlier(rows) if rows else None


class PostgresRolloutUse:
    """Tokens of rollouts as the leader counts them, from the budgets that workers have reported."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def has_any(self, run: Run) -> bool:
        return bool(await self._session.fetchval("find_budget_use", run_id=run.run_id, epoch=run.epoch))

    async def settle(self, run: Run, missing: Sequence[MissingSample]) -> bool:
        is_over: bool = await self._session.fetchval(
            "settle_unscored_use",
            run_id=run.run_id,
            epoch=run.epoch,
            samples=[item.sample for item in missing],
            rollouts=[item.rollout for item in missing],
        )
        return is_over

    async def unscored(self, run: Run, in_flight: Sequence[Shard] = ()) -> TokenUsage:
        keys = [(sample, shard.rollout) for shard in in_flight for sample in shard.samples]
        rows = await self._session.fetch(
            "sum_unscored_use",
            run_id=run.run_id,
            epoch=run.epoch,
            samples=[sample for sample, _ in keys],
            rollouts=[rollout for _, rollout in keys],
        )
        return TokenUsage(**{row["kind"]: row["tokens"] for row in rows})


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
