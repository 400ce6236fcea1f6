"""Runs on a leaderboard: opened, answered, closed and listed, over whichever stores a test has."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol

from proctor.values.rollout import AgentKind
from proctor.values.run import RunState
from proctor.values.scoring import ScoringMethod, TaskGroup
from proctor.values.usage import ModelPrice
from services.results.leaderboard.add_baselines import AddBaselines
from services.results.leaderboard.list_history import NEWEST
from services.results.leaderboard.ports import (
    BaselineStore,
    HistoryRange,
    HistoryStore,
    LeaderboardStore,
)
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.runs.run_plan import RunFacts, RunPlan
from services.results.summaries.ports import Stores
from services.results.summaries.run_summary import RunSummary
from tests.fakes.results.inline_scorer import InlineScorer
from tests.fakes.results.memory_leaderboard import (
    ThreadCalls,
)
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, scored
from tests.fakes.results.stores import close_run_of

A_DAY_AGO = datetime.now(UTC) - timedelta(days=1)  # noqa: TID251  # rows get the database's own time


class Kept(LeaderboardStore, HistoryStore, Protocol):
    """Both in one, as the adapters have them."""


@dataclass(frozen=True)
class World:
    """Runs of one benchmark that no other test has heard of."""

    stores: Stores
    kept: Kept
    baselines: BaselineStore
    leased_runs: ProcessLeases
    benchmark: str

    async def run(
        self,
        model: str,
        *,
        right: int,
        project_id: int = 1,
        limit: int | None = None,
        method: ScoringMethod = ScoringMethod.LOGLIKELIHOOD,
        price: ModelPrice | None = None,
        agent_kind: AgentKind | None = None,
    ) -> RunPlan:
        """An open run of four samples, so many of them answered well."""
        sample_set_id = new_id()
        await self.stores.sample_sets.stage(
            sample_set_id, [choice_sample(at, sample_set_id) for at in range(4)]
        )
        await self.stores.sample_sets.commit(sample_set_id, 4)
        facts = RunFacts(self.benchmark, 0, model, project_id, limit=limit, price=price)
        groups = (TaskGroup(self.benchmark, ("t0",)),)
        plan = replace(plan_of([4], [sample_set_id]), facts=facts, groups=groups, scoring_method=method)
        if agent_kind:
            request = json.dumps({"agent": f"{agent_kind}, 30 steps", "agent_kind": agent_kind})
            provenance = replace(plan.tasks[0].provenance, request_json=request)
            plan = replace(plan, tasks=(replace(plan.tasks[0], provenance=provenance),))
        await self.stores.records.open(plan, 1)
        rows = [scored(plan.run_id, answered(at)) for at in range(4)]
        wrong = [replace(row, scores={"acc": 0.0, "mcc": (0, 1)}) for row in rows[right:]]
        await self.stores.outcomes.record([*rows[:right], *wrong])
        return plan

    @property
    def add_baselines(self) -> AddBaselines:
        return AddBaselines(
            self.stores.records,
            self.stores.sample_sets,
            self.stores.summaries,
            self.baselines,
            self.leased_runs,
            ThreadCalls(),
            InlineScorer(),
        )

    async def close(self, plan: RunPlan, state: RunState = RunState.COMPLETED, epoch: int = 1) -> None:
        close_run = close_run_of(self.stores).close
        await close_run(plan.run_id, epoch, state, allow_partial=True)

    async def summary_of(self, plan: RunPlan) -> RunSummary:
        summary = await self.stores.summaries.find(plan.run_id, 1)
        assert summary is not None
        return summary

    async def listed(self, *, is_best: bool = False, project_id: int | None = None) -> list[tuple[str, str]]:
        entries = await self.kept.candidates(self.benchmark, "acc", project_id, is_best=is_best)
        return sorted((entry.run.model, entry.run.run_id) for entry in entries)

    async def history(self, model: str = "", *, page_size: int = 100) -> list[tuple[str, RunState | None]]:
        page = HistoryRange(self.benchmark, model, A_DAY_AGO, NEWEST, page_size)
        runs = await self.kept.page(page)
        assert await self.kept.count(page) >= len(runs)
        return [(run.run_id, run.state) for run in runs]
