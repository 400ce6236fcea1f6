"""Summaries of closed epochs in Postgres."""

from dataclasses import replace
from typing import Protocol

from pydantic import TypeAdapter

from proctor.values.run import RunState
from services.common.postgres import PostgresSession, PostgresTransaction
from services.results.runs.run_plan import RunPlan
from services.results.summaries.run_summary import ContaminationFigure, RunSummary

SUMMARY = TypeAdapter(RunSummary)


class AddClosedRun(Protocol):
    async def __call__(
        self, transaction: PostgresTransaction, plan: RunPlan, summary: RunSummary, *, is_again: bool = False
    ) -> None: ...


class PostgresSummaries:
    """`add_closed_run` lists the run as closed, within the transaction that stores its summary."""

    def __init__(self, session: PostgresSession, add_closed_run: AddClosedRun) -> None:
        self._session = session
        self._add_closed_run = add_closed_run

    async def keep(self, plan: RunPlan, summary: RunSummary, *, replaces: bool = False) -> RunSummary:
        run_id, epoch = summary.run_id, summary.epoch

        async def add(transaction: PostgresTransaction) -> None:
            if await transaction.fetchrow("lock_frozen_epoch", run_id=run_id, epoch=epoch) is not None:
                kept = (
                    await transaction.fetchrow("lock_summary", run_id=run_id, epoch=epoch)
                    if replaces
                    else None
                )
                # What was stored beside its figures stays.
                beside = SUMMARY.validate_json(kept["summary"]).contamination if kept else ()
                stored = SUMMARY.dump_json(replace(summary, contamination=beside)).decode()
                await transaction.execute(
                    "add_summary", run_id=run_id, epoch=epoch, summary=stored, replaces=replaces
                )
                await self._add_closed_run(transaction, plan, summary, is_again=replaces)

        await self._session.run(add)
        return await self.find(run_id, epoch) or summary

    async def change_state(self, plan: RunPlan, summary: RunSummary, state: RunState) -> None:
        async def change(transaction: PostgresTransaction) -> None:
            changed = await transaction.fetchval(
                "change_final_state", run_id=summary.run_id, epoch=summary.epoch, state=state
            )
            if changed is not None:
                await self._add_closed_run(transaction, plan, summary)

        await self._session.run(change)

    async def add_problem(self, run_id: str, epoch: int, problem: str) -> None:
        async def add(transaction: PostgresTransaction) -> None:
            row = await transaction.fetchrow("lock_summary", run_id=run_id, epoch=epoch)
            summary = None if row is None else SUMMARY.validate_json(row["summary"])
            # Not by SQL: jsonb would lose the order of the figures.
            if summary is not None and problem not in summary.problems:
                changed = replace(summary, problems=(*summary.problems, problem))
                await transaction.execute(
                    "change_summary", run_id=run_id, epoch=epoch, summary=SUMMARY.dump_json(changed).decode()
                )

        await self._session.run(add)

    async def add_contamination(
        self, run_id: str, epoch: int, figure: ContaminationFigure
    ) -> RunSummary | None:
        async def add(transaction: PostgresTransaction) -> RunSummary | None:
            row = await transaction.fetchrow("lock_summary", run_id=run_id, epoch=epoch)
            if row is None:
                return None
            changed = SUMMARY.validate_json(row["summary"]).with_contamination(figure)
            await transaction.execute(
                "change_summary", run_id=run_id, epoch=epoch, summary=SUMMARY.dump_json(changed).decode()
            )
            return changed

        return await self._session.run(add)

    async def find(self, run_id: str, epoch: int) -> RunSummary | None:
        row = await self._session.fetchrow("read_summary", run_id=run_id, epoch=epoch)
        return None if row is None else SUMMARY.validate_json(row["summary"])
