"""Summaries of closed epochs in Postgres."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from pydantic import TypeAdapter

from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.runs.run_plan import RunPlan
from services.results.summaries.run_summary import RunSummary

AddClosedRun = Callable[[PostgresTransaction, RunPlan, RunSummary], Awaitable[None]]

SUMMARY = TypeAdapter(RunSummary)


@dataclass(frozen=True, slots=True)
class PostgresSummaries:
    """`add_closed_run` lists the run as closed, within the transaction that stores its summary."""

    session: PostgresSession
    add_closed_run: AddClosedRun

    async def keep(self, plan: RunPlan, summary: RunSummary) -> RunSummary:
        run_id, epoch = summary.run_id, summary.epoch

        async def add(transaction: PostgresTransaction) -> None:
            if await transaction.fetchrow("hold_closed_epoch", run_id, epoch) is not None:
                await transaction.execute("add_summary", run_id, epoch, SUMMARY.dump_json(summary).decode())
                await self.add_closed_run(transaction, plan, summary)

        await self.session.run(add)
        return await self.find(run_id, epoch) or summary

    async def change_state(self, plan: RunPlan, summary: RunSummary, state: RunState) -> None:
        async def change(transaction: PostgresTransaction) -> None:
            changed = await transaction.fetchval("change_final_state", summary.run_id, summary.epoch, state)
            if changed is not None:
                await self.add_closed_run(transaction, plan, summary)

        await self.session.run(change)

    async def add_problem(self, run_id: str, epoch: int, problem: str) -> None:
        async def add(transaction: PostgresTransaction) -> None:
            row = await transaction.fetchrow("lock_summary", run_id, epoch)
            summary = None if row is None else SUMMARY.validate_json(row["summary"])
            # Not by SQL: jsonb would lose the order of the figures.
            if summary is not None and problem not in summary.problems:
                changed = replace(summary, problems=(*summary.problems, problem))
                await transaction.execute(
                    "change_summary", run_id, epoch, SUMMARY.dump_json(changed).decode()
                )

        await self.session.run(add)

    async def find(self, run_id: str, epoch: int) -> RunSummary | None:
        row = await self.session.fetchrow("read_summary", run_id, epoch)
        return None if row is None else SUMMARY.validate_json(row["summary"])
