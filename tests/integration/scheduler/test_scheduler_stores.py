"""The promises of the scheduler's stores, held by the fake in memory and by Postgres alike."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.generation import GenerationParams
from proctor.values.names.run_labels import RunLabels
from proctor.values.priority import Priority
from proctor.values.run import RunCounts, RunId, RunState, TaskCounts
from proctor.values.scoring import OutputType, PromptForm, ScoringMethod, Truncation
from proctor.values.usage import ModelPrice, TokenUsage
from services.common.errors import RunNotFound
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.limits.queue_limits import LimitChanges
from services.scheduler.planning.ports import PlanRecord, ShardMoves
from services.scheduler.planning.shard import Shard
from services.scheduler.runs.admission.planned_rows import PlannedRows
from services.scheduler.runs.admission.run_queue import UserRunCounts
from services.scheduler.runs.lifecycle.errors import QueueFull, RequestIdTaken
from services.scheduler.runs.lifecycle.run import PlannedTask, Run, RunError, RunFinish
from services.scheduler.runs.reads.run_list import RunCursor, RunFilter
from services.scheduler.suites.suite import Generation
from tests.fakes.callers import by
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.stores import HOUR, Stores, add, admit, empty_stores, new_run, stores_in_memory
from tests.fakes.scheduler.surroundings import START

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHARDS = [Shard(0, 0, 0, range(64), 64), Shard(1, 0, 0, [64, 65, 67], 3)]
TASK = PlannedTask(
    task="say",
    version="1",
    sample_set_id="set",
    first_sample=0,
    sample_count=67,
    output_type=OutputType.GENERATE_UNTIL,
    num_fewshot=2,
    is_stand_in=True,
    row_source="rows",
    row_source_revision="1",
    generation=Generation(("\n",), 8),
)
COUNTS = RunCounts(1, (TaskCounts("say", 67, 1, 2),), {"timeout": 1}, {"engine": "fake 1"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(params=["memory", "postgres"], loop_scope="module")
async def stores(request: pytest.FixtureRequest, pool: asyncpg.Pool) -> Stores:
    return stores_in_memory() if request.param == "memory" else await empty_stores(pool)


async def running(stores: Stores, **order: object) -> tuple[FencingToken, Run]:
    run = await add(stores, new_run(**order))  # type: ignore[arg-type]  # names are checked by replace
    token = await stores.begin_term()
    await admit(stores, token)
    return token, await stores.runs.get(run.run_id)


async def planned(stores: Stores, **order: object) -> tuple[FencingToken, Run]:
    token, run = await running(stores, **order)
    await stores.shards.add_shards(token, run, SHARDS)
    await stores.shards.mark_planned(token, run, PlanRecord((TASK,), 67, {**run.environment, "b": "2"}))
    return token, await stores.runs.get(run.run_id)


async def test_run_comes_back_as_it_was_stored(stores: Stores) -> None:
    params = GenerationParams(temperature=0.5, provider_params={"min_p": 0.1})
    ordered = new_run(tasks=("a", "b"), limit=3, params=params, max_cost=0.25)
    run = await add(stores, replace(ordered, price=ModelPrice(2.5, 10, 1.25, "EUR")))
    assert await stores.runs.get(run.run_id) == run


async def test_unknown_run_is_not_found(stores: Stores) -> None:
    with pytest.raises(RunNotFound):
        await stores.runs.get(RunId(str(uuid4())))


async def test_repeated_request_gives_the_first_run_even_when_the_queue_is_full(stores: Stores) -> None:
    request = str(uuid4())
    await stores.limits.change(LimitChanges(max_pending_runs_per_user=1), by())
    first = await stores.runs.add(new_run(), request)
    assert await stores.runs.add(new_run(), request) == first
    with pytest.raises(QueueFull):
        await stores.runs.add(new_run(), str(uuid4()))


async def test_same_request_id_of_another_user_is_another_request(stores: Stores) -> None:
    request = str(uuid4())
    wanted = [new_run(user=f"user {number}") for number in range(8)]
    stored = await asyncio.gather(*(stores.runs.add(run, request) for run in wanted))
    assert [run.run_id for run in stored] == [run.run_id for run in wanted]


async def test_same_request_id_for_another_order_is_refused(stores: Stores) -> None:
    request = str(uuid4())
    params = GenerationParams(temperature=1.0, provider_params={"a": 1.0, "b": [1e22, {"c": None}]})
    first = await stores.runs.add(new_run(limit=5, params=params, tasks=("a",)), request)
    assert await stores.runs.add(new_run(limit=5, params=params, tasks=("a",)), request) == first
    with pytest.raises(RequestIdTaken, match="an id of its own") as refusal:
        await stores.runs.add(new_run(limit=7), request)
    assert refusal.value.facts["run_id"] == first.run_id
    assert request not in refusal.value.message


async def test_limit_of_pending_runs_holds_for_calls_at_the_same_time(stores: Stores) -> None:
    await stores.limits.change(LimitChanges(max_pending_runs_per_user=5), by())
    calls = [stores.runs.add(new_run(user="ann"), "") for _ in range(20)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, Run) for answer in answers) == 5
    assert sum(isinstance(answer, QueueFull) for answer in answers) == 15


async def test_pages_show_each_run_once_newest_first(stores: Stores) -> None:
    runs = [await add(stores, new_run(age)) for age in range(5)]
    seen: list[RunId] = []
    cursor = None
    while True:
        page = await stores.lists.page(RunFilter(project_id=7), 2, cursor)
        assert page.total == 5
        if not page.runs:
            break
        seen += [run.run_id for run in page.runs]
        cursor = RunCursor(page.runs[-1].created_at, page.runs[-1].run_id, page.total)
    assert seen == [run.run_id for run in reversed(runs)]


async def test_filters_leave_out_what_does_not_match(stores: Stores) -> None:
    await add(stores, new_run(user="other", project_id=6, model="openai/other", suite="unlike"))
    run = await add(stores, replace(new_run(), labels=RunLabels("Über Nacht 100%", ("ci", "b c"))))
    for wanted, count in [
        (RunFilter(name="über nACHT", tag="ci"), 1),
        (RunFilter(name="100%"), 1),
        (RunFilter(name="100_"), 0),
        (RunFilter(tag="b c"), 1),
        (RunFilter(tag="c"), 0),
        (RunFilter(models=("openai/fake", "no/model")), 1),
        (RunFilter(models=("no/model",)), 0),
        (RunFilter(run_ids=(run.run_id, str(uuid4()))), 1),
        (RunFilter(benchmark="toy", model="openai/fake", state=RunState.PENDING), 1),
        (RunFilter(benchmark="other"), 0),
        (RunFilter(model="other"), 0),
        (RunFilter(state=RunState.FAILED), 0),
        (RunFilter(project_id=8), 0),
        (RunFilter(id_prefix=run.run_id[:6]), 1),
        (RunFilter(id_prefix=run.run_id.replace("-", "")), 1),
        (RunFilter(id_prefix=f"{int(run.run_id[0], 16) ^ 1:x}{run.run_id[1:6]}"), 0),
    ]:
        page = await stores.lists.page(wanted, 10, None)
        assert ([one.run_id for one in page.runs], page.total) == ([run.run_id][:count], count)


async def test_admission_goes_by_priority_then_age_up_to_the_limit(stores: Stores) -> None:
    low, normal, older, newer = [
        await add(stores, new_run(age, priority=priority))
        for age, priority in enumerate([Priority.LOW, Priority.NORMAL, Priority.HIGH, Priority.HIGH])
    ]
    assert await stores.queue.positions([low.run_id]) == {low.run_id: 4}
    assert await stores.queue.positions([older.run_id]) == {older.run_id: 1}
    token = await stores.begin_term()
    assert set(await admit(stores, token, 3)) == {older.run_id, newer.run_id, normal.run_id}
    assert await admit(stores, token, 3) == []
    assert len((await stores.queue.queue(0)).running) == 3
    started = await stores.runs.get(older.run_id)
    assert (started.started_at, started.deadline) == (START + HOUR, START + 4 * HOUR)


async def test_queue_is_seen_in_order_with_everybodys_share(stores: Stores) -> None:
    first = await add(stores, new_run(age=0, user="ann"))
    second = await add(stores, new_run(age=1, user="ann"))
    third = await add(stores, new_run(age=2, user="ann"))
    fourth = await add(stores, new_run(age=3, user="bob"))
    urgent_less = await add(stores, new_run(age=0, user="carl", priority=Priority.LOW))
    token = await stores.begin_term()
    assert await admit(stores, token, 1) == [first.run_id]
    queue = await stores.queue.queue(3)
    assert [run.run_id for run in queue.running] == [first.run_id]
    assert [each.run.run_id for each in queue.pending] == [fourth.run_id, second.run_id, third.run_id]
    assert [each.queued_at for each in queue.pending][:2] == [fourth.created_at, second.created_at]
    assert queue.pending_total == 4
    assert queue.users == [
        UserRunCounts("ann", 1, 2),
        UserRunCounts("bob", 0, 1),
        UserRunCounts("carl", 0, 1),
    ]
    assert await stores.queue.positions([urgent_less.run_id]) == {urgent_less.run_id: 4}


async def test_paused_runs_are_listed_the_latest_first(stores: Stores) -> None:
    runs = [await add(stores, new_run(age=age)) for age in range(3)]
    for later, run in enumerate(runs):
        await stores.runs.pause(run.run_id, by(START + later * HOUR))
    assert [run.run_id for run in (await stores.queue.queue(2)).paused] == [runs[2].run_id, runs[1].run_id]
    assert (await stores.queue.queue(10)).pending == []


async def test_writes_of_an_earlier_term_are_refused(stores: Stores) -> None:
    old, run = await planned(stores)
    await stores.begin_term()
    finish = RunFinish(RunState.COMPLETED, START, counts=COUNTS)
    for write in (
        stores.slots.admit(old, START),
        stores.led.set_phase(old, run, "x"),
        stores.shards.delete_shards(old, run),
        stores.shards.add_shards(old, run, SHARDS),
        stores.shards.mark_planned(old, run, PlanRecord((TASK,), 1)),
        stores.led.finish(old, run, finish),
        stores.led.mark_closed(old, run, COUNTS),
        stores.shards.move(old, run, ShardMoves(done=[0])),
        stores.shards.return_shards(old, run, SHARDS),
    ):
        with pytest.raises(LeadershipLost):
            await write
    assert await stores.runs.get(run.run_id) == run


async def test_planned_run_has_its_tasks_and_shards(stores: Stores) -> None:
    _, run = await planned(stores)
    assert (run.total, run.planned_epoch, run.is_planned) == (67, 1, True)
    assert run.environment == {"a": "1", "b": "2"}
    assert await stores.runs.planned_tasks(run.run_id) == (TASK,)
    found = await stores.shards.planned(run, -1, 10)
    assert [(shard.number, list(shard.samples), shard.size) for shard in found] == [
        (0, list(range(64)), 64),
        (1, [64, 65, 67], 3),
    ]
    assert [shard.number for shard in await stores.shards.planned(run, 0, 10)] == [1]
    assert await stores.shards.next_shard_number(run) == 2


async def test_planning_anew_replaces_the_shards(stores: Stores) -> None:
    token, run = await planned(stores)
    await stores.shards.delete_shards(token, run)
    assert await stores.shards.planned(run, -1, 10) == []


async def test_stopped_run_takes_no_plan_and_sends_no_shard(stores: Stores) -> None:
    token, run = await planned(stores)
    await stores.runs.cancel(run.run_id, by(START))
    assert not await stores.led.set_phase(token, run, "planning")
    assert not await stores.shards.add_shards(token, run, SHARDS)
    assert not await stores.shards.mark_planned(token, run, PlanRecord((), 0))
    assert not await stores.shards.move(token, run, ShardMoves(dispatched=[replace(SHARDS[0], attempt=1)]))
    assert await stores.shards.dispatched(run) == []


async def test_shard_goes_from_planned_to_dispatched_to_done(stores: Stores) -> None:
    token, run = await planned(stores)
    sent = replace(SHARDS[1], attempt=1)
    assert await stores.shards.move(token, run, ShardMoves(dispatched=[sent])) == 1
    assert [shard.number for shard in await stores.shards.planned(run, -1, 10)] == [0]
    assert [(shard.number, shard.attempt) for shard in await stores.shards.dispatched(run)] == [(1, 1)]
    await stores.shards.move(token, run, ShardMoves(done=[1]))
    assert await stores.shards.dispatched(run) == []


async def test_shard_given_back_waits_with_what_is_missing_and_keeps_its_attempts(stores: Stores) -> None:
    token, run = await planned(stores)
    await stores.shards.move(token, run, ShardMoves(dispatched=[replace(SHARDS[1], attempt=1)]))
    await stores.shards.return_shards(token, run, [replace(SHARDS[1], samples=[67])])
    [_, back] = await stores.shards.planned(run, -1, 10)
    assert (back.number, list(back.samples), back.size, back.attempt) == (1, [67], 3, 1)


async def test_done_shard_is_not_given_back(stores: Stores) -> None:
    token, run = await planned(stores)
    await stores.shards.move(token, run, ShardMoves(dispatched=[replace(SHARDS[1], attempt=1)]))
    await stores.shards.move(token, run, ShardMoves(done=[1]))
    await stores.shards.return_shards(token, run, [SHARDS[1]])
    assert [shard.number for shard in await stores.shards.planned(run, -1, 10)] == [0]


async def test_completed_run_is_closed_with_its_counts(stores: Stores) -> None:
    token, run = await planned(stores)
    assert await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START + 2 * HOUR, counts=COUNTS))
    ended = await stores.runs.get(run.run_id)
    assert ended.is_closed
    assert ended.final_counts == COUNTS
    assert ended.environment["engine"] == "fake 1"
    assert await stores.led.to_drive() == []
    history = await stores.queue.past_runs([("toy", "openai/fake"), ("toy", "openai/other")])
    [past] = history["toy", "openai/fake"]
    assert (past.total, past.seconds) == (67, 3600)
    assert not history.get(("toy", "openai/other"))


async def test_rows_of_tasks_are_those_of_completed_runs_the_latest_first(stores: Stores) -> None:
    token, whole = await planned(stores)
    await stores.led.finish(token, whole, RunFinish(RunState.COMPLETED, START + HOUR, counts=COUNTS))
    token, cut = await planned(stores, age=1, model="openai/other", limit=3, tasks=(TASK.task,))
    await stores.led.finish(token, cut, RunFinish(RunState.COMPLETED, START + HOUR, counts=COUNTS))
    await planned(stores, age=2)
    samples = {TASK.task: TASK.sample_count}
    rows = await stores.queue.planned_rows(["toy", "nothing"])
    assert rows["toy"] == [PlannedRows((TASK.task,), 3, samples), PlannedRows((), None, samples)]
    assert not rows.get("nothing")


async def test_usage_is_reported_by_runs_of_the_model_else_by_those_of_the_suite(stores: Stores) -> None:
    token, run = await planned(stores)
    used = replace(COUNTS, usage=TokenUsage(100, 20, 10, 5))
    await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START + HOUR, counts=used))
    new = replace(run, order=replace(run.order, model="openai/new"))
    for asked in (run, new):
        [past] = await stores.lists.past_usage(asked)
        assert (past.usage, past.run.total) == (used.usage, 67)
    token, dear = await planned(stores, model="openai/new")
    counts = replace(COUNTS, usage=TokenUsage(900))
    await stores.led.finish(token, dear, RunFinish(RunState.COMPLETED, START + HOUR, counts=counts))
    [past] = await stores.lists.past_usage(new)
    assert past.usage == counts.usage


@pytest.mark.parametrize(
    "changes",
    [
        {"suite": "other"},
        {"num_fewshot": 3},
        {"prompt_form": PromptForm.CHAT},
        {"truncation": Truncation.LEFT},
        {"base_url": "http://inside:8000/v1"},
        {"params": GenerationParams(max_tokens=9)},
        {"params": GenerationParams(context_tokens=9)},
        {"params": GenerationParams(provider_params={"reasoning_effort": "high"})},
    ],
)
async def test_runs_with_other_parameters_do_not_count_for_usage(
    stores: Stores, changes: dict[str, Any]
) -> None:
    token, run = await planned(stores)
    await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START + HOUR, counts=COUNTS))
    assert await stores.lists.past_usage(replace(run, order=replace(run.order, limit=3)))
    assert not await stores.lists.past_usage(replace(run, order=replace(run.order, **changes)))
    assert not await stores.lists.past_usage(replace(run, scoring_method=ScoringMethod.LOGLIKELIHOOD))


async def test_failed_run_is_looked_after_until_it_is_closed(stores: Stores) -> None:
    token, run = await planned(stores)
    error = RunError("DEADLINE_REACHED", "Too late.")
    assert await stores.led.finish(token, run, RunFinish(RunState.FAILED, START, error))
    ended = await stores.runs.get(run.run_id)
    assert (ended.error, ended.is_closed) == (error, False)
    assert await stores.led.to_drive() == [run.run_id]
    await stores.led.mark_closed(token, run, None)
    assert (await stores.runs.get(run.run_id)).is_closed
    assert await stores.led.to_drive() == []


async def test_cancelled_run_is_not_completed_afterwards(stores: Stores) -> None:
    token, run = await planned(stores)
    await stores.runs.cancel(run.run_id, by(START))
    assert not await stores.led.finish(token, run, RunFinish(RunState.COMPLETED, START, counts=COUNTS))
    assert (await stores.runs.get(run.run_id)).state is RunState.CANCELLED


async def test_cancel_can_be_repeated_by_the_same_call_and_not_by_another(stores: Stores) -> None:
    run = await add(stores, new_run())
    first = await stores.runs.cancel(run.run_id, by(START))
    assert first is not None
    assert first.state is RunState.CANCELLED
    assert await stores.runs.cancel(run.run_id, by(START)) == first
    assert await stores.runs.cancel(run.run_id, by(START + HOUR)) is None


async def test_retry_waits_at_the_end_of_the_queue_in_a_new_epoch(stores: Stores) -> None:
    token, run = await planned(stores)
    assert await stores.runs.requeue(run.run_id, by(START)) is None
    await stores.led.finish(token, run, RunFinish(RunState.FAILED, START, RunError("X", "x"), COUNTS))
    waiting = await add(stores, new_run(age=5))
    again = await stores.runs.requeue(run.run_id, by(START + HOUR))
    assert again is not None
    assert (again.state, again.epoch, again.planned_epoch) == (RunState.PENDING, 2, 1)
    assert (again.error, again.final_counts, again.is_closed, again.total) == (None, None, False, 67)
    assert await stores.runs.requeue(run.run_id, by(START + HOUR)) == again
    assert await stores.queue.positions([waiting.run_id]) == {waiting.run_id: 1}
    assert await stores.shards.planned(again, -1, 10) == []


async def test_retry_is_refused_when_the_queue_is_full(stores: Stores) -> None:
    run = await add(stores, new_run())
    await stores.runs.cancel(run.run_id, by(START))
    token = await stores.begin_term()
    await stores.led.mark_closed(token, run, None)
    await add(stores, new_run())
    await stores.limits.change(LimitChanges(max_pending_runs_per_user=1), by())
    with pytest.raises(QueueFull):
        await stores.runs.requeue(run.run_id, by(START + HOUR))
    assert (await stores.runs.get(run.run_id)).state is RunState.CANCELLED
