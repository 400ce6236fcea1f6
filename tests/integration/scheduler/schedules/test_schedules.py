"""Schedules on a real Postgres: what is ordered when, what is missed, what waits and what is refused."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from datetime import timedelta

import asyncpg
import pytest
import pytest_asyncio

from proctor.values.comparison import UntilDecided
from proctor.values.names.run_labels import RunLabels
from proctor.values.names.user import Caller, Role
from proctor.values.priority import Priority
from services.common.errors import BelongsToAnother, InvalidParameter
from services.scheduler.leadership.leader_election import LeadershipLost
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.runs.lifecycle.submit_run import Submission, SubmitRun
from services.scheduler.schedules import postgres
from services.scheduler.schedules.change_schedule import WantedSchedule
from services.scheduler.schedules.cron_times import CronTimes
from services.scheduler.schedules.errors import ScheduleNotFound, TooManySchedules
from services.scheduler.workers.model_names import UnknownModel
from tests.fakes.scheduler.database import scheduler_database
from tests.fakes.scheduler.scheduler_harness import toy_order
from tests.fakes.schedules import ScheduleHarness, empty_schedules
from tests.fakes.suites.toy_suites import MODEL, SUITE

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN, BOB = Caller("ann"), Caller("bob")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[asyncpg.Pool]:
    async with scheduler_database() as pool:
        yield pool


@pytest_asyncio.fixture(loop_scope="module")
async def harness(pool: asyncpg.Pool) -> ScheduleHarness:
    return await empty_schedules(pool, max_pending=3)


async def test_order_is_given_at_its_time_with_low_priority(harness: ScheduleHarness) -> None:
    added = await harness.add("0 * * * *", order=toy_order(priority=Priority.HIGH, limit=2))
    await harness.fire()
    assert await harness.stored_runs() == []
    harness.go_on(hours=1)
    await harness.fire()
    await harness.fire()
    [run] = await harness.stored_runs()
    assert (run.user, run.order.priority, run.order.limit) == ("ann", Priority.LOW, 2)
    assert run.labels == RunLabels("nightly")
    # The leader was told of it.
    assert run.run_id in harness.scheduler.controls.words
    shown = await harness.store.get(added.schedule_id)
    assert shown.last_firing
    assert shown.last_firing.run_ids == (run.run_id,)
    assert shown.last_firing.due_at == added.next_due_at
    assert shown.next_due_at == added.next_due_at + timedelta(hours=1)


async def test_any_number_of_missed_times_is_one_firing(harness: ScheduleHarness) -> None:
    added = await harness.add("0 * * * *")
    harness.go_on(days=2, minutes=5)
    await harness.fire()
    await harness.fire()
    [firing] = await harness.store.firings(added.schedule_id)
    # The latest of the missed ones.
    assert firing.due_at == (await harness.store.get(added.schedule_id)).next_due_at - timedelta(hours=1)
    assert firing.due_at > added.next_due_at
    assert len(await harness.stored_runs()) == 1


async def test_paused_times_are_not_made_up_for(harness: ScheduleHarness) -> None:
    added = await harness.add()
    paused = await harness.change.pause(added.schedule_id, ANN)
    assert paused.paused_at
    harness.go_on(hours=3)
    await harness.fire()
    resumed = await harness.change.resume(added.schedule_id, ANN)
    await harness.fire()
    assert await harness.stored_runs() == []
    assert resumed.next_due_at > harness.scheduler.clock.now()
    # Repeated, each changes nothing.
    assert await harness.change.resume(added.schedule_id, ANN) == resumed


async def test_full_queue_makes_a_firing_wait_until_there_is_room(
    harness: ScheduleHarness,
) -> None:
    added = await harness.add()
    for _ in range(4):
        harness.go_on(minutes=1)
        await harness.fire()
    waiting = await harness.store.get(added.schedule_id)
    assert waiting.problem.startswith("Queue is full")
    assert waiting.next_due_at <= harness.scheduler.clock.now()
    assert len(await harness.stored_runs()) == 3
    # Others' schedules do not wait with it.
    other = await harness.add(user="bob")
    harness.go_on(minutes=1)
    await harness.fire()
    assert (await harness.store.get(other.schedule_id)).last_firing
    await harness.pool.execute("DELETE FROM runs WHERE run_id = (SELECT run_id FROM runs LIMIT 1)")
    harness.go_on(minutes=1)
    await harness.fire()
    fired = await harness.store.get(added.schedule_id)
    assert fired.problem == ""
    assert len(await harness.store.firings(added.schedule_id)) == 4


async def test_order_that_is_refused_is_seen_and_the_next_time_comes(harness: ScheduleHarness) -> None:
    added = await harness.add()
    await harness.pool.execute("UPDATE schedules SET ordered = jsonb_set(ordered, '{suite}', '\"gone\"')")
    harness.go_on(minutes=1)
    await harness.fire()
    shown = await harness.store.get(added.schedule_id)
    assert shown.next_due_at > harness.scheduler.clock.now()
    assert shown.last_firing
    assert shown.last_firing.run_ids == ()
    assert shown.last_firing.problem.startswith("Invalid benchmark suite")
    await harness.pool.execute(
        f"UPDATE schedules SET ordered = jsonb_set(ordered, '{{suite}}', '\"{SUITE}\"')"
    )
    harness.go_on(minutes=1)
    await harness.fire()
    assert len(await harness.stored_runs()) == 1


async def test_what_cannot_be_ordered_holds_up_no_other(harness: ScheduleHarness) -> None:
    broken, other = await harness.add(), await harness.add(user="bob")
    await harness.pool.execute(
        "UPDATE schedules SET ordered = jsonb_set(ordered, '{rollouts}', '\"many\"') WHERE username = 'ann'"
    )
    harness.go_on(minutes=1)
    await harness.fire()
    assert (await harness.store.get(other.schedule_id)).last_firing
    assert await harness.store.firings(broken.schedule_id) == []


class _BrokenSubmit(SubmitRun):
    async def runs_of(self, submission: Submission) -> Sequence[Run]:
        raise RuntimeError(f"password of the database, {submission.user}")


async def test_what_was_thrown_is_not_shown_to_the_user(harness: ScheduleHarness) -> None:
    added = await harness.add()
    harness.go_on(minutes=1)
    submitting = harness.scheduler.submitting
    broken = _BrokenSubmit(*(getattr(submitting, each.name) for each in fields(submitting)))
    await replace(harness.due, submit=broken).submit_all(await harness.begin_term())
    shown = await harness.store.get(added.schedule_id)
    assert shown.problem == (
        "The order could not be given, and is tried again; the log of the scheduler says why."
    )
    harness.go_on(minutes=1)
    await harness.fire()
    assert len(await harness.store.firings(added.schedule_id)) == 1


async def test_order_until_decided_gives_both_runs_in_one_firing(harness: ScheduleHarness) -> None:
    added = await harness.add(order=toy_order(until_decided=UntilDecided(against_model=f"{MODEL}-2")))
    harness.go_on(minutes=1)
    await harness.fire()
    [firing] = await harness.store.firings(added.schedule_id)
    runs = await harness.stored_runs()
    assert {run.run_id for run in runs} == {*firing.run_ids}
    assert len(runs) == 2
    # Neither or both: the queue has room for one more.
    harness.go_on(minutes=1)
    await harness.fire()
    assert len(await harness.stored_runs()) == 2
    assert (await harness.store.get(added.schedule_id)).problem


async def test_old_leader_fires_nothing(harness: ScheduleHarness) -> None:
    await harness.add()
    harness.go_on(minutes=1)
    old = await harness.begin_term()
    await harness.begin_term()
    with pytest.raises(LeadershipLost):
        await harness.due.submit_all(old)
    assert await harness.stored_runs() == []


async def test_pause_between_read_and_firing_wins(harness: ScheduleHarness) -> None:
    added = await harness.add()
    harness.go_on(minutes=1)
    [due] = await harness.led.due(harness.scheduler.clock.now())
    await harness.change.pause(added.schedule_id, ANN)
    token = await harness.begin_term()
    await harness.due._submit(token, due, harness.scheduler.clock.now())
    assert await harness.stored_runs() == []
    assert await harness.store.firings(added.schedule_id) == []


async def test_only_the_owner_and_maintainers_change_a_schedule(harness: ScheduleHarness) -> None:
    added = await harness.add()
    with pytest.raises(BelongsToAnother):
        await harness.change.pause(added.schedule_id, BOB)
    await harness.change.delete(added.schedule_id, Caller("olga", role=Role.MAINTAINER))
    with pytest.raises(ScheduleNotFound):
        await harness.change.delete(added.schedule_id, ANN)


async def test_schedule_without_name_or_with_an_unknown_model_is_refused(harness: ScheduleHarness) -> None:
    with pytest.raises(InvalidParameter, match="name is empty"):
        await harness.add(name=" ")
    with pytest.raises(UnknownModel):
        await harness.add(order=toy_order(model="vllm/unknown"))
    with pytest.raises(InvalidParameter, match="five fields"):
        await harness.add("* * *")


async def test_repeated_call_finds_its_schedule_though_it_would_be_refused_by_now(
    harness: ScheduleHarness,
) -> None:
    added = await harness.add()
    wanted = WantedSchedule(
        schedule_id=added.schedule_id,
        times=CronTimes("0 0 30 2 *", "UTC"),
        order=toy_order(model="gone/model"),
        user=added.user,
        labels=RunLabels(""),
    )
    assert await harness.change.add(wanted) == added


async def test_user_has_so_many_schedules_at_most(
    harness: ScheduleHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "MAX_OF_USER", 2)
    for _ in range(2):
        await harness.add()
    with pytest.raises(TooManySchedules):
        await harness.add()
    await harness.add(user="bob")


async def test_schedule_of_a_user_whose_last_key_was_revoked_is_stopped_and_told(
    harness: ScheduleHarness,
) -> None:
    await harness.pool.execute("TRUNCATE api_keys, notice_targets CASCADE")
    key = """
        INSERT INTO api_keys (key_id, username, role, note, code, created_by, created_at, expires_at, version)
        VALUES ($1, 'ann', 'runner', '', sha256('x'), 'olga', $2, 'infinity', $3)
    """
    now = harness.scheduler.clock.now()
    for number, key_id in enumerate(("one", "two")):
        await harness.pool.execute(key, key_id, now, number + 1)
    await harness.pool.execute(
        """
        INSERT INTO notice_targets
            (target_id, username, channel, address, events, scope, project_id, created_at)
        VALUES
            (gen_random_uuid(), 'ann', 'webhook', 'https://a.org', '{schedule_refused}', 'own', 0, now())
        """
    )
    added, other = await harness.add(), await harness.add(user="bob")

    async def revoke(key_id: str) -> None:
        harness.go_on(minutes=1)
        revoking = "UPDATE api_keys SET revoked_at = $2 WHERE key_id = $1"
        await harness.pool.execute(revoking, key_id, harness.scheduler.clock.now())
        harness.go_on(minutes=1)
        await harness.fire()

    await revoke("one")
    # She has another one.
    assert (await harness.store.get(added.schedule_id)).paused_at is None
    ordered = len(await harness.store.firings(added.schedule_id))
    assert ordered
    await revoke("two")
    await harness.fire()
    stopped = await harness.store.get(added.schedule_id)
    assert stopped.paused_at
    assert stopped.problem.startswith("The last API key of ann was revoked")
    assert len(await harness.store.firings(added.schedule_id)) == ordered
    [text] = [row["text"] for row in await harness.pool.fetch("SELECT text FROM notices")]
    assert text == f"Schedule nightly ordered nothing: {stopped.problem}"
    # Who signs in otherwise keeps it, and so does who was told to go on.
    assert (await harness.store.get(other.schedule_id)).last_firing
    resumed = await harness.change.resume(added.schedule_id, Caller("olga", role=Role.OPERATOR))
    assert resumed.problem == ""
    harness.go_on(minutes=2)
    await harness.fire()
    assert len(await harness.store.firings(added.schedule_id)) == ordered + 1
    await harness.pool.execute("TRUNCATE api_keys, notice_targets CASCADE")


async def test_member_who_was_removed_orders_nothing_more(harness: ScheduleHarness) -> None:
    project = await harness.pool.fetchval(
        """
        INSERT INTO projects (name, note, created_by, created_at, version)
        VALUES ('secret', '', 'olga', now(), 0)
        ON CONFLICT (name) DO UPDATE SET note = '' RETURNING project_id
        """
    )
    member = "INSERT INTO project_members VALUES ($1, 'ann', $2, 'olga', now(), nextval('version_of_test'))"
    await harness.pool.execute("CREATE SEQUENCE IF NOT EXISTS version_of_test START 1000")
    await harness.pool.execute(member, project, "runner")
    added = await harness.add(order=toy_order(project_id=project))
    harness.go_on(minutes=1)
    await harness.fire()
    await harness.pool.execute("UPDATE project_members SET role = NULL WHERE project_id = $1", project)
    harness.go_on(minutes=1)
    await harness.fire()
    latest, first = await harness.store.firings(added.schedule_id)
    assert (len(first.run_ids), first.problem) == (1, "")
    assert (latest.run_ids, latest.problem[:26]) == ((), "There is no such project, ")
    await harness.pool.execute("DELETE FROM project_members")
