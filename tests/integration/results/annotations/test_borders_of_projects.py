"""What results shows of runs that refer to each other across the border of a declared project."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from proctor.values.judging.scale import read_scale, scale_options
from proctor.values.names.project import FIRST_DECLARED
from proctor.values.names.user import Caller, Role
from proctor.values.run import RunState
from proctor.values.scoring import MetricUse, OutputType, TaskScoring
from services.common.errors import ProjectNotFound, RowsNotGuarded
from services.common.grpc.caller import caller_metadata, serve_caller
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.common.sql.row_scope import ALL_ROWS, serve_scope
from services.results.annotations.annotate_answers import AnnotateAnswers, Said
from services.results.annotations.postgres import PostgresAnnotations
from services.results.annotations.show_panel import ShowPanel
from services.results.answers.calibrate_judge import CalibrateJudge
from services.results.answers.marks import Mark
from services.results.answers.postgres import PostgresMarks
from services.results.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.results.runs.errors import RecordNotFound
from services.results.runs.postgres import check_guarded
from services.results.runs.run_plan import RunFacts, RunPlan
from tests.fakes.results.paired_runs import PairedRuns, single
from tests.fakes.results.recorded_run import answered, choice_sample, new_id, plan_of, said, scored
from tests.fakes.results.stores import close_run_of, postgres_stores
from tests.harness.servers import ordinary_role, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

DECLARED, SIZE = FIRST_DECLARED + 1, 3
ANN = Caller("ann", projects=((DECLARED, Role.RUNNER),))
VIC = Caller("vic", projects=((DECLARED, Role.VIEWER),))
BOB = Caller("bob")


def serve(caller: Caller) -> None:
    serve_caller(dict(caller_metadata(caller)))


class Results:
    """Postgres as a service has it: its role owns the tables, and policies hold for it."""

    def __init__(self, session: PostgresSession, superuser: str) -> None:
        self.session, self.superuser = session, superuser
        self.stores = postgres_stores(session)
        self.records, self.marks = self.stores.records, PostgresMarks(session)
        self.annotations = PostgresAnnotations(session)
        self.annotate = AnnotateAnswers(records=self.records, annotations=self.annotations)
        self.panel = ShowPanel(records=self.records, annotations=self.annotations)
        self.calibrate = CalibrateJudge(records=self.records, marks=self.marks, annotations=self.annotations)

    async def run(self, project_id: int) -> RunPlan:
        """One with answers."""
        serve_scope(ALL_ROWS)
        plan = plan_of([SIZE], [await self._samples("")])
        return await self._opened(replace(plan, facts=RunFacts("toy", model="p/a", project_id=project_id)))

    async def judging(self, judged_id: str, project_id: int) -> RunPlan:
        """A closed one that names a run as its benchmark, as one that judges it does."""
        serve_scope(ALL_ROWS)
        metric = MetricUse("verdict", scale_options(read_scale("yes-no")))
        plan = plan_of([SIZE], [await self._samples(".0")])
        scoring = TaskScoring(OutputType.GENERATE_UNTIL, (metric,))
        task = replace(plan.tasks[0], task="correctness", scoring=scoring)
        facts = RunFacts(judged_id, model=f"p/{plan.run_id[:8]}", project_id=project_id)
        opened = await self._opened(replace(plan, tasks=(task,), facts=facts))
        await close_run_of(self.stores).close(opened.run_id, 1, RunState.COMPLETED, allow_partial=True)
        return opened

    async def _samples(self, row: str) -> str:
        sample_set_id, salt = new_id(), new_id()
        samples = [replace(choice_sample(at, salt), row_id=f"{at}{row}") for at in range(SIZE)]
        await self.stores.sample_sets.stage(sample_set_id, samples)
        return (await self.stores.sample_sets.commit(sample_set_id, SIZE)).sample_set_id

    async def _opened(self, plan: RunPlan) -> RunPlan:
        plan = (await self.records.open(plan, 1)).plan
        outcomes = [scored(plan.run_id, answered(at)) for at in range(SIZE)]
        if plan.tasks[0].task == "correctness":
            outcomes = [
                replace(scored(plan.run_id, said(at, "yes")), scores={"verdict": 1.0}) for at in range(SIZE)
            ]
        await self.stores.outcomes.record(outcomes)
        return plan


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def results() -> AsyncIterator[Results]:
    async with postgres_server() as server:
        dsn = await ordinary_role(server.address)
        await migrate(dsn, SCHEMA, MIGRATIONS)
        async with await connect_pool(dsn, schema=SCHEMA, max_size=2) as pool:
            yield Results(PostgresSession(pool, QUERIES), server.address)


async def test_a_judge_of_a_project_is_on_the_panel_of_an_open_run_for_members_alone(
    results: Results,
) -> None:
    judged = await results.run(7)
    open_judge, closed_judge = [await results.judging(judged.run_id, each) for each in (7, DECLARED)]
    for caller, expected in ((ANN, {open_judge.run_id, closed_judge.run_id}), (BOB, {open_judge.run_id})):
        serve(caller)
        # For those who do not see all of them it is a panel as well, and no error.
        shown = await results.panel.show(open_judge.run_id)
        assert {judge.run_id for judge in shown.judges} == expected


async def test_who_only_reads_in_a_project_annotates_nothing_in_it(results: Results) -> None:
    run = await results.run(DECLARED)
    said_of_it = Said((0, 0), "yes", "", "ann")
    serve(ANN)
    await results.annotate.annotate(run.run_id, said_of_it, ANN)
    serve(VIC)
    assert (await results.annotate.agreement(run.run_id, "vic")).counts.annotated == 1
    with pytest.raises(ProjectNotFound):
        await results.annotate.annotate(run.run_id, said_of_it, VIC)


async def test_a_run_that_names_a_run_of_a_project_as_its_benchmark_shows_nothing_of_it(
    results: Results,
) -> None:
    """Anybody may name a suite or a log so, and give it the metric of a judge."""
    secret = await results.run(DECLARED)
    serve(ANN)
    await results.annotate.annotate(secret.run_id, Said((0, 0), "no", "xylophone", "ann"), ANN)
    await results.marks.mark(secret.run_id, [(1, 0)], Mark.WRONG, "ann")
    forged = await results.judging(secret.run_id, 0)
    serve(BOB)
    calls = (
        results.annotate.page(forged.run_id, "ann", 10, ""),
        results.annotate.next(forged.run_id, "bob", 0, is_disagreement_first=False),
        results.annotate.agreement(forged.run_id, "bob"),
        results.annotate.annotate(forged.run_id, Said((2, 0), "no", "", "bob"), BOB),
        results.panel.show(forged.run_id),
        results.calibrate.calibrate(forged.run_id),
    )
    for call in calls:
        with pytest.raises(RecordNotFound):
            await call
    serve(ANN)
    assert (await results.calibrate.calibrate(forged.run_id)).figure.marks > 0


async def test_no_service_starts_where_everybody_would_see_what_is_in_projects(results: Results) -> None:
    await results.run(DECLARED)
    await check_guarded(results.session)
    async with await connect_pool(results.superuser, schema=SCHEMA, max_size=1) as pool:
        with pytest.raises(RowsNotGuarded):
            await check_guarded(PostgresSession(pool, QUERIES))


async def test_a_run_is_compared_with_the_runs_of_its_leaderboard(results: Results) -> None:
    serve_scope(ALL_ROWS)
    runs = PairedRuns(results.session)
    texts = [f"sample {at}" for at in range(20)]
    plans = [
        await runs.run(single(texts, *[1] * right, *[0] * (20 - right)), project_id=project_id)
        for right, project_id in ((5, DECLARED), (10, 7), (15, DECLARED), (20, 8))
    ]
    await runs.compare_peers.compare()
    ids = [plan.run_id for plan in plans]
    stored = await runs.comparisons.of_runs(ids, "acc")
    assert {frozenset(map(ids.index, pair)) for pair in stored} == {frozenset({0, 2}), frozenset({1, 3})}
