"""Limits of a declared project in Postgres: open runs, and a budget that its runs share."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
import pytest_asyncio

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.values.names.user import Caller, Role
from proctor.values.run import RunCounts, RunId, RunState
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.errors import InvalidParameter, OperatorsOnly, ProjectNotFound
from services.common.migrations import migrate
from services.common.postgres import PostgresSession, connect_pool
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.notices.notice import NoticeTarget
from services.scheduler.notices.postgres import PostgresNoticeTargets
from services.scheduler.postgres import MIGRATIONS, QUERIES, SCHEMA
from services.scheduler.projects.errors import ProjectBudgetUsed, ProjectFull, ProjectNameTaken
from services.scheduler.projects.manage_projects import ManageProjects
from services.scheduler.projects.postgres import PostgresProjects
from services.scheduler.projects.project import Project, ProjectChanges, ProjectUse
from services.scheduler.runs.lifecycle.postgres import PostgresRuns
from services.scheduler.runs.lifecycle.postgres_led import PostgresLedRuns
from services.scheduler.runs.lifecycle.postgres_projects import PostgresProjectUses
from services.scheduler.runs.lifecycle.run import Run, RunFinish
from tests.fakes.callers import OPERATOR, by
from tests.fakes.scheduler.stores import new_run
from tests.fakes.scheduler.surroundings import START, SetClock
from tests.fakes.scheduler_rules import queue_limits
from tests.harness.servers import ordinary_role, postgres_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A token of the answer costs a dollar.
PRICE = ModelPrice(input_per_million=0, output_per_million=1_000_000)


@dataclass(frozen=True)
class Scheduler:
    """The stores of a scheduler, whose clock stands."""

    runs: PostgresRuns
    led: PostgresLedRuns
    manage: ManageProjects
    uses: PostgresProjectUses
    session: PostgresSession
    token: FencingToken

    async def declare(self, **limits: object) -> Project:
        project = await self.manage.create(uuid4().hex, "", OPERATOR, str(uuid4()))
        return await self.change(project, **limits)

    async def change(self, project: Project, **changes: object) -> Project:
        wanted = ProjectChanges(**changes)  # type: ignore[arg-type]  # its fields
        return await self.manage.update(project.project_id, wanted, OPERATOR)

    async def order(self, project: Project, *, is_priced: bool = True, **order: object) -> Run:
        run = new_run(project_id=project.project_id, **order)  # type: ignore[arg-type]  # its fields
        added = await self.runs.add(replace(run, price=PRICE if is_priced else None), "")
        return await self.runs.get(added.run_id)

    async def end(self, run: Run, cost: int, at: datetime = START) -> None:
        counts = RunCounts(run.epoch, usage=TokenUsage(completion_tokens=cost))
        await self.led.finish(self.token, run, RunFinish(RunState.CANCELLED, at, counts=counts))
        assert (await self.runs.get(run.run_id)).is_closed

    async def use(self, project: Project, at: datetime = START) -> ProjectUse:
        return await self.uses.use(project.project_id, at)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scheduler() -> AsyncIterator[Scheduler]:
    async with postgres_server() as server:
        dsn = await ordinary_role(server.address)
        await migrate(dsn, SCHEMA, MIGRATIONS)
        async with await connect_pool(dsn, schema=SCHEMA) as pool:
            session = PostgresSession(pool, QUERIES)
            yield Scheduler(
                PostgresRuns(session, PostgresLimits(session, queue_limits(max_pending_runs_per_user=100))),
                PostgresLedRuns(session),
                ManageProjects(PostgresProjects(session), SetClock()),
                PostgresProjectUses(session),
                session,
                FencingToken(await pool.fetchval(QUERIES["begin_term"].statement)),
            )


async def test_a_project_has_no_more_open_runs_than_it_may(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_open_runs=2)
    first, _ = await scheduler.order(project), await scheduler.order(project)
    with pytest.raises(ProjectFull) as refused:
        await scheduler.order(project)
    assert refused.value.message == (
        f"Project {project.name} may have 2 open runs, and has as many. Wait until one has ended."
    )
    await scheduler.end(first, 0)
    await scheduler.order(project)
    # A retried one counts as a new one, and is not kept out by itself.
    with pytest.raises(ProjectFull):
        await scheduler.runs.requeue(first.run_id, by())
    await scheduler.change(project, max_open_runs=3)
    assert await scheduler.runs.requeue(first.run_id, by())


async def test_orders_at_once_take_no_more_than_there_is(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=10)
    made = await asyncio.gather(
        *(scheduler.order(project, max_cost=4.0) for _ in range(5)), return_exceptions=True
    )
    refused = [each for each in made if isinstance(each, ProjectBudgetUsed)]
    assert len(refused) == 3
    assert (await scheduler.use(project)).reserved == 8
    assert refused[0].message == (
        f"Project {project.name} has 2 left of 10 in all: 0 spent, 8 set aside."
        " Order with a max_cost within it, or ask an operator for more."
    )


async def test_what_an_ended_run_did_not_cost_is_free_again_and_a_deleted_one_stays_spent(
    scheduler: Scheduler,
) -> None:
    project = await scheduler.declare(max_cost=10)
    run = await scheduler.order(project, max_cost=10.0)
    with pytest.raises(ProjectBudgetUsed):
        await scheduler.order(project, max_cost=1.0)
    await scheduler.end(run, 7)
    # Said again by a new leader, it is counted once.
    await scheduler.led.mark_closed(
        scheduler.token, run, RunCounts(run.epoch, usage=TokenUsage(completion_tokens=7))
    )
    await scheduler.runs.delete(run.run_id, by())
    assert await scheduler.use(project) == ProjectUse(open_runs=0, cost=7, cost_this_month=7, reserved=0)
    with pytest.raises(ProjectBudgetUsed):
        await scheduler.order(project, max_cost=4.0)
    # Without a limit of its own a run may cost what is left.
    assert (await scheduler.order(project)).order.max_cost == 3
    with pytest.raises(ProjectBudgetUsed):
        await scheduler.order(project)


async def test_most_of_a_budget_is_told_once_for_each_budget_and_month(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=100, max_cost_per_month=10)
    targets = PostgresNoticeTargets(scheduler.session)
    target = NoticeTarget(
        target_id=str(uuid4()),
        user="ann",
        channel=NoticeChannel.WEBHOOK,
        address="https://example.org",
        events=(NoticeEvent.BUDGET_NEARLY_SPENT,),
        created_at=START,
        scope=NoticeScope.PROJECT,
        project_id=project.project_id,
    )
    await targets.add(target, by())

    async def texts_after(cost: int, at: datetime = START) -> list[str]:
        await scheduler.end(await scheduler.order(project, max_cost=float(cost)), cost, at)
        return [notice.text for notice in (await targets.page("ann", None, 10, None)).notices]

    assert await texts_after(7) == []
    assert await texts_after(1) == await texts_after(1)
    [text] = await texts_after(1)
    assert text == f"Project {project.name} has cost 8 USD of at most 10 USD in {START:%Y-%m}."
    project = await scheduler.change(project, max_cost_per_month=12)
    assert (await texts_after(1))[0].endswith(f" has cost 11 USD of at most 12 USD in {START:%Y-%m}.")
    assert len(await texts_after(1, START - timedelta(days=40))) == 2


async def test_a_retried_run_takes_what_it_may_still_cost(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=10)
    run = await scheduler.order(project, max_cost=9.0)
    await scheduler.end(run, 6)
    other = await scheduler.order(project, max_cost=2.0)
    with pytest.raises(ProjectBudgetUsed):
        await scheduler.runs.requeue(run.run_id, by())
    await scheduler.end(other, 0)
    retried = await scheduler.runs.requeue(run.run_id, by())
    assert retried
    assert await scheduler.use(project) == ProjectUse(open_runs=1, cost=6, cost_this_month=6, reserved=3)
    await scheduler.end(retried, 8)
    assert (await scheduler.use(project)).cost == 8


async def test_a_run_from_before_the_budget_gets_what_is_left_as_it_is_retried(scheduler: Scheduler) -> None:
    project = await scheduler.declare()
    run = await scheduler.order(project)
    await scheduler.end(run, 6)
    await scheduler.change(project, max_cost=10)
    retried = await scheduler.runs.requeue(run.run_id, by())
    assert retried
    # 6 are spent already, and 4 are left.
    assert (retried.order.max_cost, (await scheduler.runs.get(run.run_id)).order.max_cost) == (10, 10)
    assert (await scheduler.use(project)).reserved == 4


async def test_two_runs_of_one_order_share_what_is_left(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=10)
    run, base = (replace(new_run(project_id=project.project_id), price=PRICE) for _ in range(2))
    await scheduler.runs.add(run, "", base)
    stored = [(await scheduler.runs.get(each.run_id)).order.max_cost for each in (run, base)]
    assert stored == [5, 5]


async def test_sums_of_tenths_are_no_more_than_there_is(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=0.3)
    for _ in range(3):
        await scheduler.order(project, max_cost=0.1)
    with pytest.raises(ProjectBudgetUsed) as refused:
        await scheduler.order(project, max_cost=0.1)
    # It may be free again: a judge waits for it.
    assert refused.value.may_pass


async def test_the_budget_of_a_month_is_whole_again_in_the_next(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=15, max_cost_per_month=10)
    last_month = START - timedelta(days=40)
    await scheduler.end(await scheduler.order(project, max_cost=10.0), 10, last_month)
    assert await scheduler.use(project) == ProjectUse(open_runs=0, cost=10, cost_this_month=0, reserved=0)
    # That of the project as a whole is the smaller one now.
    assert (await scheduler.order(project)).order.max_cost == 5
    with pytest.raises(ProjectBudgetUsed, match="0 left of 15 in all"):
        await scheduler.order(project)


async def test_models_without_a_price_need_no_budget(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=1)
    await scheduler.order(project)
    assert (await scheduler.order(project, is_priced=False)).order.max_cost is None


async def test_a_repeated_call_finds_the_run_whose_limit_the_budget_set(scheduler: Scheduler) -> None:
    project, request = await scheduler.declare(max_cost=5), str(uuid4())
    run = replace(new_run(project_id=project.project_id), price=PRICE)
    await scheduler.runs.add(run, request)
    again = await scheduler.runs.add(replace(run, run_id=RunId(str(uuid4()))), request)
    assert (again.run_id, again.order.max_cost) == (run.run_id, 5)


async def test_limits_are_reset_and_only_operators_set_them(scheduler: Scheduler) -> None:
    project = await scheduler.declare(max_cost=5, max_open_runs=1)
    without = await scheduler.change(project, reset=("max_cost",), note="all of it")
    assert (without.max_cost, without.max_open_runs, without.note) == (None, 1, "all of it")
    maintainer = Caller("ann", projects=((project.project_id, Role.MAINTAINER),))
    renamed = await scheduler.manage.update(
        project.project_id, ProjectChanges(name=f"of ann {project.name}"), maintainer
    )
    assert renamed.name == f"of ann {project.name}"
    for of_operators in ({"max_cost": 9}, {"is_shared": True}, {"reset": ("max_cost",)}):
        changes = ProjectChanges(**of_operators)
        with pytest.raises(OperatorsOnly):
            await scheduler.manage.update(project.project_id, changes, maintainer)
    with pytest.raises(ProjectNotFound):
        await scheduler.manage.update(project.project_id, ProjectChanges(name="mine"), Caller("bob"))
    other = await scheduler.declare()
    with pytest.raises(ProjectNameTaken):
        await scheduler.change(other, name=renamed.name)
    for wrong in ({"max_cost": 0.0}, {"max_cost": float("nan")}, {"max_open_runs": 0}, {"reset": ("name",)}):
        with pytest.raises(InvalidParameter):
            await scheduler.change(project, **wrong)


async def test_a_shared_project_is_shown_as_such_until_it_is_no_more(scheduler: Scheduler) -> None:
    project = await scheduler.declare()
    assert (await scheduler.change(project, is_shared=True)).is_shared
    # Everybody is no member that is shown.
    assert await scheduler.manage.projects.members(project.project_id) == []
    assert not (await scheduler.change(project, is_shared=False)).is_shared
