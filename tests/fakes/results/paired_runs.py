"""Runs over the same samples in a real Postgres, and what compares them."""

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property

from proctor.values.outcome import FailureClass, OutcomeStatus
from proctor.values.run import RunState
from proctor.values.sample import Prompt
from proctor.values.scoring import ScoringMethod, TaskGroup, TaskScoring
from services.common.clock import SystemClock
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.results.comparison.compare_runs import ComparePair, CompareQuery, CompareRuns, StoreComparison
from services.results.comparison.comparison import Comparison, Difference, DifferenceCache
from services.results.comparison.list_flips import ListFlips
from services.results.comparison.postgres import PART_OUTCOMES, PostgresComparisons, PostgresPairs
from services.results.leaderboard.compare_peers import ComparePeers
from services.results.leaderboard.compare_pending import ComparePending
from services.results.leaderboard.postgres import PostgresLeaderboard, PostgresPeers, PostgresWaitingRuns
from services.results.leaderboard.process_leases import ProcessLeases
from services.results.leaderboard.rank_models import RankModels
from services.results.leases.lease import WorkKind
from services.results.leases.postgres import PostgresLeases
from services.results.outcomes.outcome import ScoredOutcome
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.run_plan import PlannedTask, RunFacts, RunPlan
from services.results.samples.sample import StoredSample
from services.results.scoring.score import ScoreValue, ScoringTarget
from services.results.summaries.ports import Stores
from tests.fakes.results.memory_leaderboard import ThreadCalls
from tests.fakes.results.recorded_run import CHOICE_SCORING, answered, content_hash, failed, new_id, scored
from tests.fakes.results.stores import close_run_of, postgres_stores
from tests.harness.servers import postgres_server

FAILED = None
Scores = Mapping[str, ScoreValue]


def right(is_right: float, target: int = 1) -> Scores:
    """The scores of an answer to a choice: its accuracy and its labels."""
    return {"acc": float(is_right), "mcc": (target, target if is_right else 1 - target)}


UNPARSED: Scores = {"acc": 0.0, "mcc": (1, -1)}


@dataclass(frozen=True)
class TaskOfRun:
    """A task of a run: texts that make its samples, and the scores of each by rollout."""

    texts: Sequence[str]
    scores: Sequence[Sequence[Scores | None]]
    clusters: Sequence[str] = ()


def single(texts: Sequence[str], *scores: float | Scores | None, clusters: Sequence[str] = ()) -> TaskOfRun:
    """One rollout; numbers say whether an answer is right."""
    return TaskOfRun(
        texts, [[right(one) if isinstance(one, float | int) else one] for one in scores], clusters
    )


@dataclass(frozen=True)
class PairedRuns:
    """A benchmark of its own, so that no test sees another's runs. Large tasks are paired in parts."""

    session: PostgresSession
    part_outcomes: int = PART_OUTCOMES
    benchmark: str = field(default_factory=new_id)

    @property
    def stores(self) -> Stores:
        return postgres_stores(self.session)

    @property
    def pairs(self) -> PostgresPairs:
        return PostgresPairs(self.session, self.part_outcomes)

    @property
    def compare_pair(self) -> ComparePair:
        return ComparePair(sample_sets=self.stores.sample_sets, pairs=self.pairs, calls=ThreadCalls())

    @property
    def compare_runs(self) -> CompareRuns:
        return CompareRuns(
            records=self.stores.records,
            summaries=self.stores.summaries,
            runs_of_models=PostgresLeaderboard(self.session),
            compare_pair=self.compare_pair,
            cache=DifferenceCache(),
        )

    @property
    def store_comparison(self) -> StoreComparison:
        return StoreComparison(self.stores.records, self.comparisons, self.compare_pair)

    @property
    def rank_models(self) -> RankModels:
        leaderboard = PostgresLeaderboard(self.session)
        return RankModels(leaderboard, self.comparisons, self.compare_pending)

    @cached_property
    def compare_pending(self) -> ComparePending:
        return ComparePending(self.comparisons, self.store_comparison, SystemClock())

    @property
    def list_flips(self) -> ListFlips:
        return ListFlips(self.stores.records, self.stores.sample_sets, self.pairs)

    @property
    def comparisons(self) -> PostgresComparisons:
        return PostgresComparisons(self.session)

    @property
    def peers(self) -> PostgresPeers:
        return PostgresPeers(self.session)

    @cached_property
    def leased_runs(self) -> ProcessLeases:
        leases = PostgresLeases(self.session, holder=new_id())
        return ProcessLeases(PostgresWaitingRuns(self.session), leases)

    async def waiting_run(self) -> str | None:
        """The run that is compared next; it goes on waiting."""
        work = await self.leased_runs.waiting.next(WorkKind.COMPARISON)
        return None if work is None else work.run_id

    @property
    def compare_peers(self) -> ComparePeers:
        leaderboard = PostgresLeaderboard(self.session)
        return ComparePeers(
            self.stores.records,
            leaderboard,
            self.comparisons,
            self.peers,
            self.leased_runs,
            self.store_comparison,
        )

    async def run(
        self,
        *tasks: TaskOfRun,
        method: ScoringMethod = ScoringMethod.LOGLIKELIHOOD,
        scoring: TaskScoring = CHOICE_SCORING,
        **facts: object,
    ) -> RunPlan:
        """A completed run of a model, its tasks named t0, t1, …"""
        plan = await self.open_run(*tasks, method=method, scoring=scoring, **facts)
        await self.close(plan)
        return plan

    async def open_run(
        self,
        *tasks: TaskOfRun,
        method: ScoringMethod = ScoringMethod.LOGLIKELIHOOD,
        scoring: TaskScoring = CHOICE_SCORING,
        **facts: object,
    ) -> RunPlan:
        planned, first = [], 0
        for index, task in enumerate(tasks):
            sample_set_id = await self._store(task)
            planned.append(PlannedTask(f"t{index}", sample_set_id, first, len(task.texts), scoring))
            first += len(task.texts)
        names = tuple(task.task for task in planned)
        plan = RunPlan(
            new_id(),
            tuple(planned),
            max((len(scores) for task in tasks for scores in task.scores), default=1),
            method,
            facts=replace(RunFacts(self.benchmark, model=f"p/{new_id()}"), **facts),  # type: ignore[arg-type]  # its fields
            groups=(TaskGroup(self.benchmark, names),),
        )
        await self.stores.records.open(plan, 1)
        await self.stores.outcomes.record(_outcomes(plan, tasks))
        return plan

    async def close(self, plan: RunPlan, state: RunState = RunState.COMPLETED, epoch: int = 1) -> None:
        close_run = close_run_of(self.stores).close
        await close_run(plan.run_id, epoch, state, allow_partial=True)

    async def compared(
        self, *plans: RunPlan, metrics: Sequence[str] = (), is_forced: bool = False
    ) -> Comparison:
        run_ids = tuple(plan.run_id for plan in plans)
        return await self.compare_runs.compare(
            CompareQuery(run_ids, metrics=tuple(metrics), is_forced=is_forced)
        )

    async def difference(self, first: RunPlan, second: RunPlan, metric: str = "acc") -> Difference:
        """Of the first task."""
        comparison = await self.compared(first, second, metrics=[metric])
        return next(one for one in comparison.differences if one.task == "t0")

    async def _store(self, task: TaskOfRun) -> str:
        sample_set_id = new_id()
        clusters = task.clusters or [""] * len(task.texts)
        samples = [
            _sample(at, text, cluster)
            for at, (text, cluster) in enumerate(zip(task.texts, clusters, strict=True))
        ]
        await self.stores.sample_sets.stage(sample_set_id, samples)
        content = content_hash(samples)
        kept = await self.stores.sample_sets.commit(sample_set_id, len(samples), content_hash=content)
        return kept.sample_set_id


def _sample(position: int, text: str, cluster: str) -> StoredSample:
    target = ScoringTarget(choices=(" no", " yes"), choice=1)
    return StoredSample(
        position, position, hashlib.sha256(text.encode()).digest(), Prompt(text), target, cluster
    )


def _outcomes(plan: RunPlan, tasks: Sequence[TaskOfRun]) -> list[ScoredOutcome]:
    return [
        _outcome(plan, index, planned.first_sample + at, rollout, scores)
        for index, (planned, task) in enumerate(zip(plan.tasks, tasks, strict=True))
        for at, rollouts in enumerate(task.scores)
        for rollout, scores in enumerate(rollouts)
    ]


def _outcome(plan: RunPlan, index: int, sample: int, rollout: int, scores: Scores | None) -> ScoredOutcome:
    if scores is FAILED:
        failure = failed(sample, FailureClass.TIMEOUT, rollout=rollout)
        return scored(plan.run_id, failure, task_index=index)
    row = scored(plan.run_id, answered(sample, rollout=rollout), task_index=index)
    if scores is UNPARSED:
        return replace(row, scores=scores, status=OutcomeStatus.UNPARSED, prediction="")
    return replace(row, scores=scores, prediction="yes" if scores.get("acc") else "no")


@asynccontextmanager
async def postgres_session() -> AsyncIterator[PostgresSession]:
    async with postgres_server() as server:
        await migrate(server.address, SCHEMA, MIGRATIONS)
        async with await connect_pool(server.address, schema=SCHEMA) as pool:
            yield PostgresSession(pool, QUERIES)
