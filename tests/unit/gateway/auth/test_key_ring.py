"""What is open while a key or a session ends at the very same time, and what many ends cost."""

import asyncio
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from proctor.v1 import access_service_pb2 as access_pb2
from proctor.values.names.project import FIRST_DECLARED
from proctor.values.names.user import Caller, Role
from services.common.api_keys import Pepper
from services.common.errors import ProjectNotFound
from services.gateway.auth.key_ring import MAX_AGE_SECONDS, KeyRing
from services.gateway.http.errors import KeysOutdated, KeyUnknown
from tests.fakes.virtual_time import LoopClock, in_virtual_time

DAY = timedelta(days=1)
PROJECT = FIRST_DECLARED + 1
CALLER = Caller("ann", Role.RUNNER, is_verified=True, key_id="a" * 16, session_id="s")


def changes(version: int, ends_in: timedelta, *sessions: str) -> access_pb2.ListAccessChangesResponse:
    heard = access_pb2.ListAccessChangesResponse(version=version)
    key = heard.keys.add(key_id=CALLER.key_id, user="ann", role=Role.RUNNER.number, code=b"x")
    key.ends_in.FromTimedelta(ends_in)
    for each in sessions:
        heard.sessions.add(session_id=each).ends_in.FromTimedelta(DAY)
    return heard


def ring_with_key() -> KeyRing:
    ring = KeyRing(LoopClock(), Pepper(b"k" * 32))
    ring.learn(changes(1, DAY))
    return ring


async def hold(ring: KeyRing, leaving_seconds: float = 0.0) -> None:
    async with ring.while_taken(CALLER):
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(leaving_seconds)


@pytest.mark.parametrize("ended", [changes(2, timedelta()), changes(2, DAY, "s")], ids=["key", "session"])
@in_virtual_time
async def test_nothing_opens_with_what_ended_since_its_caller_was_found(
    ended: access_pb2.ListAccessChangesResponse,
) -> None:
    ring = ring_with_key()
    ring.learn(ended)
    began = asyncio.get_running_loop().time()
    with pytest.raises(KeyUnknown):
        await hold(ring)
    assert asyncio.get_running_loop().time() - began < 1


@in_virtual_time
async def test_call_that_takes_its_time_to_end_keeps_no_further_change_from_being_heard() -> None:
    ring = ring_with_key()
    held = asyncio.create_task(hold(ring, leaving_seconds=5))
    await asyncio.sleep(1)
    ring.learn(changes(2, timedelta()))
    await asyncio.sleep(1)
    ring.learn(changes(3, timedelta(), "s"))
    assert ring.version == 3
    with pytest.raises(KeyUnknown):
        await held


@in_virtual_time
async def test_call_ends_where_the_scheduler_has_lost_what_it_knew() -> None:
    ring = ring_with_key()
    held = asyncio.create_task(hold(ring))
    await asyncio.sleep(1)
    ring.learn(access_pb2.ListAccessChangesResponse(is_unknown_version=True))
    with pytest.raises(KeyUnknown):
        await held


@in_virtual_time
async def test_replica_that_starts_hears_of_many_ended_sessions_in_no_time() -> None:
    ring = ring_with_key()
    heard = changes(2, DAY, *(f"session {number}" for number in range(10_000)))
    before = time.process_time()
    ring.learn(heard)
    # A look at all of them for each takes some ten.
    assert time.process_time() - before < 3
    await asyncio.sleep(DAY.total_seconds() + 1)
    for number in range(10_001):
        ring.end_session(f"later {number}", 60)
    assert not ring.is_ended("session 1")
    assert ring.is_ended("later 1")


def membership(version: int, role: Role | None) -> access_pb2.ListAccessChangesResponse:
    heard = access_pb2.ListAccessChangesResponse(version=version)
    heard.members.add(project_id=PROJECT, user="ann", role=role.number if role else 0)
    return heard


@in_virtual_time
async def test_role_in_a_project_is_heard_changed_and_taken_away_and_ends_what_is_open() -> None:
    ring = ring_with_key()
    assert ring.projects_of(CALLER) == ()
    ring.learn(membership(2, Role.RUNNER))
    assert ring.projects_of(CALLER) == ((PROJECT, Role.RUNNER),)
    assert ring.projects_of(Caller("bob")) == ()
    held = asyncio.create_task(hold(ring))
    await asyncio.sleep(1)
    # The same once more, as after a lost answer, ends nothing.
    ring.learn(membership(3, Role.RUNNER))
    await asyncio.sleep(1)
    assert not held.done()
    ring.learn(membership(4, None))
    with pytest.raises(KeyUnknown):
        await held
    assert ring.projects_of(CALLER) == ()


@in_virtual_time
async def test_roles_that_may_have_changed_are_not_taken_for_what_they_were() -> None:
    ring = ring_with_key()
    ring.learn(membership(2, Role.RUNNER))
    await asyncio.sleep(MAX_AGE_SECONDS + 1)
    with pytest.raises(KeysOutdated):
        ring.projects_of(CALLER)
    # Who has none does not depend on the scheduler.
    assert ring.projects_of(Caller("bob")) == ()


@in_virtual_time
async def test_key_that_is_bound_has_the_role_in_its_project_alone() -> None:
    ring = ring_with_key()
    heard = membership(2, Role.RUNNER)
    heard.members.add(project_id=PROJECT + 1, user="ann", role=Role.MAINTAINER.number)
    ring.learn(heard)
    bound = replace(CALLER, key_project=PROJECT + 1)
    assert ring.projects_of(bound) == ((PROJECT + 1, Role.MAINTAINER),)
    seen = replace(bound, projects=ring.projects_of(bound))
    assert [seen.role_in(each) for each in (0, 7, PROJECT, PROJECT + 1)] == [
        None,
        None,
        None,
        Role.MAINTAINER,
    ]
    # Another sight than that of who sees what is open beside it.
    assert seen.sight != replace(seen, key_project=0).sight


@in_virtual_time
async def test_project_is_named_as_it_is_called_now_and_to_who_sees_it() -> None:
    ring = ring_with_key()
    names = ring.project_names
    for version, name in ((2, "old"), (3, "new")):
        heard = access_pb2.ListAccessChangesResponse(version=version)
        heard.projects.add(project_id=PROJECT, name=name)
        ring.learn(heard)
    member = replace(CALLER, projects=((PROJECT, Role.VIEWER),))
    assert (names.name_of(PROJECT, member), names.number_of("new", member)) == ("new", PROJECT)
    for caller, name in ((member, "old"), (CALLER, "new")):
        with pytest.raises(ProjectNotFound):
            names.number_of(name, caller)
    assert names.name_of(PROJECT, CALLER) == ""


@pytest.mark.parametrize("role", [None, Role.VIEWER])
@in_virtual_time
async def test_nothing_opens_with_a_role_that_changed_since_its_caller_was_found(role: Role | None) -> None:
    """Nobody would end it afterwards, and it may stay open for days."""
    ring = ring_with_key()
    ring.learn(membership(2, Role.RUNNER))
    caller = replace(CALLER, projects=ring.projects_of(CALLER))
    async with ring.while_taken(caller):
        pass
    ring.learn(membership(3, role))
    with pytest.raises(KeyUnknown):
        async with ring.while_taken(caller):
            pytest.fail("it was opened")
