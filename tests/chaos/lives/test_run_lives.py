"""Lives of runs in two projects: their users order, pause, resume, cancel, retry, rename, rescore, export and
delete, and services are killed.

`PROCTOR_LIVES_STEPS=1000 PROCTOR_LIVES_SEED=7` makes it longer. After each step each run is in a state that
may follow the one before, and at the end nothing is lost or doubled. For the user of the other project a run
does not exist, whatever is asked of it.
"""

import json
import logging
import os
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from proctor.client.errors import NotAllowed, NotFound, Refused, Unreachable
from proctor.client.proctor_client import ProctorClient
from proctor.v1 import export_service_pb2 as export_pb2
from proctor.v1 import project_service_pb2, run_pb2
from proctor.v1 import rescore_service_pb2 as rescore_pb2
from proctor.v1 import scheduler_service_pb2 as scheduler_pb2
from tests.chaos.faults.faulted_run import FaultedRun, made_ready
from tests.chaos.faults.run_audit import assert_counters_equal_rows, assert_each_recorded_once, read_rows
from tests.chaos.faults.stack_faults import kill
from tests.fakes.eventually import eventually
from tests.fakes.stack.state_dir import temporary_state_dir
from tests.harness.keyed_suite import TASK
from tests.harness.stack_harness import SHORT_TIMEOUTS, StackHarness, StackOrder, keyed_order, stack_harness

STEPS = int(os.environ.get("PROCTOR_LIVES_STEPS", "300"))
SEED = int(os.environ.get("PROCTOR_LIVES_SEED", "5"))
LIMIT_SECONDS = 300.0 + 5.0 * STEPS
ANSWER_SECONDS = 90.0
ROWS = 60
USERS = ("ann", "bob")
OPERATOR = "olga"
KEYS = {name: f"the-key-of-{name}-0123456789" for name in (*USERS, OPERATOR)}
KILLED = ("worker", "scheduler", "results", "gateway", "nats", "postgres")
FINAL = {run_pb2.RUN_STATE_COMPLETED, run_pb2.RUN_STATE_FAILED, run_pb2.RUN_STATE_CANCELLED}
Change = Callable[[ProctorClient, str], Awaitable[object]]


def change(kind: str) -> Change:
    def make(client: ProctorClient, run_id: str) -> Awaitable[object]:
        request = getattr(scheduler_pb2, f"{kind}RunRequest")(run_id=run_id)
        made: Awaitable[object] = getattr(client.runs, f"{kind}Run")(request)
        return made

    return make


CHANGES: dict[str, Change] = {
    name.lower(): change(name) for name in ("Pause", "Resume", "Cancel", "Retry", "Delete")
}


async def rescore(client: ProctorClient, run_id: str) -> object:
    return await client.rescoring.RescoreTask(rescore_pb2.RescoreTaskRequest(run_id=run_id, task=TASK))


async def rename(client: ProctorClient, run_id: str) -> object:
    return await client.runs.LabelRun(scheduler_pb2.LabelRunRequest(run_id=run_id, name="another"))


async def export(client: ProctorClient, run_id: str) -> object:
    request = export_pb2.ExportRunRequest(run_id=run_id, format=export_pb2.EXPORT_FORMAT_JSONL)
    return [part async for part in client.exports.ExportRun(request)]


OF_RESULTS = ("rescore", "export")
CHANGES |= {"rescore": rescore, "rename": rename, "export": export}


async def project_of(clients: Mapping[str, ProctorClient], user: str) -> int:
    """A new project with this member alone."""
    projects = clients[OPERATOR].projects
    made = await projects.CreateProject(project_service_pb2.CreateProjectRequest(name=f"of {user}"))
    project_id = made.project.project_id
    await projects.SetProjectMember(
        project_service_pb2.SetProjectMemberRequest(project_id=project_id, user=user)
    )

    async def is_heard() -> bool:
        return bool(
            (await clients[user].projects.ListProjects(project_service_pb2.ListProjectsRequest())).projects
        )

    await eventually(is_heard, f"the gateway knows {user}", 10)
    return project_id


@dataclass
class Life:
    """A run as its user knows it. `may_be`: a call whose answer was lost may have been made."""

    user: str
    run_id: str
    state: int = run_pb2.RUN_STATE_PENDING
    may_be_deleted: bool = False
    may_be_retried: bool = False


@dataclass
class Lives:
    stack: StackHarness
    clients: dict[str, ProctorClient]
    projects: dict[str, int]
    draw: random.Random
    lives: dict[str, Life] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    async def step(self) -> None:
        kind = self.draw.choice(("order", "order", "kill", *CHANGES))
        if kind == "kill":
            await kill(self.stack, self.draw.choice(KILLED))
        elif kind == "order" or not self.lives:
            await self._order(self.draw.choice(USERS))
        else:
            life = self.lives[self.draw.choice(sorted(self.lives))]
            await self._call(kind, life, self.draw.choice(USERS))
        self.done[kind] += 1
        await self.look()

    async def _order(self, user: str) -> None:
        # With an id of its own, so that a call whose answer was lost makes one run.
        request = scheduler_pb2.SubmitRunRequest(
            order=keyed_order(project_id=self.projects[user]), request_id=str(self._uuid())
        )
        run = (await self._answer(lambda: self.clients[user].runs.SubmitRun(request))).run
        self.lives[run.run_id] = Life(user, run.run_id)

    def _uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.draw.getrandbits(128), version=4)

    async def _call(self, kind: str, life: Life, user: str) -> None:
        """One try: its answer may be lost. In every state a run of another project is not there."""
        try:
            await CHANGES[kind](self.clients[user], life.run_id)
            assert user == life.user, f"{user} may {kind} a run of another project"
        except NotFound:
            # Results knows a run once it is planned, and has no answers to export or score before.
            is_unknown = kind in OF_RESULTS and life.state != run_pb2.RUN_STATE_COMPLETED
            is_right = user != life.user or life.may_be_deleted or is_unknown
            assert is_right, f"{user} finds no run of their own to {kind}"
            return
        except NotAllowed:
            pytest.fail(f"{user} may not {kind} a run, but is told of it")
        except Refused:
            assert user == life.user, f"{user} is told of a run of another project"
            return
        except Unreachable:
            self.done["lost answers"] += 1
        if user == life.user:
            life.may_be_deleted |= kind == "delete"
            life.may_be_retried |= kind == "retry"

    async def look(self) -> None:
        """Each run is there for its user, in a state that may follow the one before; the other lists none."""
        for user in USERS:
            request = scheduler_pb2.ListRunsRequest(page_size=500)
            found = await self._answer(partial(self.clients[user].runs.ListRuns, request))
            assert {run.order.project_id for run in found.runs} <= {self.projects[user]}, user
        for life in list(self.lives.values()):
            try:
                run = await self._run_of(life)
            except NotFound:
                assert life.may_be_deleted, f"{life} is lost"
                self.deleted.append(self.lives.pop(life.run_id).run_id)
                continue
            if life.state in FINAL and run.state != life.state:
                is_right = life.may_be_retried and life.state != run_pb2.RUN_STATE_COMPLETED
                assert is_right, f"{life} became {run.state}"
                life.may_be_retried = False
            life.state = run.state

    async def _run_of(self, life: Life) -> run_pb2.Run:
        request = scheduler_pb2.GetRunRequest(run_id=life.run_id)
        run: run_pb2.Run = (await self._answer(lambda: self.clients[life.user].runs.GetRun(request))).run
        return run

    async def end(self) -> None:
        """What is paused goes on, and everything ends."""

        async def has_ended(life: Life) -> bool:
            if (await self._run_of(life)).state == run_pb2.RUN_STATE_PAUSED:
                await self._call("resume", life, life.user)
            return (await self._run_of(life)).state in FINAL

        await self.look()
        for life in self.lives.values():
            await eventually(partial(has_ended, life), f"{life} ends", ANSWER_SECONDS)
        await self.look()

    async def _answer(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        answers: list[Any] = []

        async def is_answered() -> bool:
            try:
                answers.append(await ask())
            except Unreachable:
                return False
            return True

        await eventually(is_answered, "the gateway answers", ANSWER_SECONDS)
        return answers[0]

    async def check(self) -> None:
        """Counted in the rows: a completed run has each answer once, and no run has more."""
        for life in self.lives.values():
            run = FaultedRun(self.stack, life.run_id, ROWS)
            rows = await read_rows(run)
            asked = ROWS if life.state == run_pb2.RUN_STATE_COMPLETED else len(rows.outcomes)
            assert len({row["sample"] for row in rows.outcomes}) == len(rows.outcomes) == asked, life
            if life.state == run_pb2.RUN_STATE_COMPLETED:
                assert_each_recorded_once(rows, ROWS)
                assert_counters_equal_rows(rows)
        for run_id in self.deleted:
            with pytest.raises(NotFound):
                await self.clients["ann"].runs.GetRun(scheduler_pb2.GetRunRequest(run_id=run_id))


@pytest.mark.thorough
@pytest.mark.timeout(LIMIT_SECONDS)
async def test_runs_live_as_their_users_say_whatever_is_killed() -> None:
    keys = {
        "PROCTOR_GATEWAY_API_KEYS": json.dumps(KEYS),
        "PROCTOR_GATEWAY_OPERATORS": json.dumps([OPERATOR]),
        "PROCTOR_SCHEDULER_MAX_READS_PER_MINUTE": "0",
        "PROCTOR_SCHEDULER_MAX_PENDING_RUNS_PER_USER": "1000",
    }
    with temporary_state_dir() as state_dir:
        order = StackOrder(rows=ROWS, environment=SHORT_TIMEOUTS | keys)
        async with stack_harness(state_dir.parent, order) as stack, AsyncExitStack() as open_clients:
            await made_ready(stack)
            lives = Lives(stack, {}, {}, random.Random(SEED))
            lives.clients |= {
                user: await open_clients.enter_async_context(
                    ProctorClient(stack.stack.gateway_grpc, api_key=key)
                )
                for user, key in KEYS.items()
            }
            lives.projects |= {user: await project_of(lives.clients, user) for user in USERS}
            for _ in range(STEPS):
                await lives.step()
            await lives.end()
            await lives.check()
    counted = f"seed {SEED}: {dict(lives.done)}, {Counter(life.state for life in lives.lives.values())}"
    logging.getLogger(__name__).info("%s", counted)
    assert lives.done.total() >= STEPS, counted
