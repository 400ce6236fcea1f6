"""Targets, ledger and sending of notices in Postgres; its users are ann, bob and the operator olga."""

from dataclasses import replace
from uuid import uuid4

import asyncpg

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.values.names.user import Caller, Role
from proctor.values.run import RunState
from services.common.postgres import PostgresSession
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.change_targets import ChangeTargets, WantedTarget
from services.scheduler.notices.dispatch_notices import DispatchNotices
from services.scheduler.notices.http_addresses import networks_of
from services.scheduler.notices.http_sender import HttpPost, SlackSender, WebhookSender, WebhookSigner
from services.scheduler.notices.notice import Notice, NoticeTarget
from services.scheduler.notices.postgres import PostgresEventLog, PostgresNoticeTargets, PostgresOutbox
from services.scheduler.postgres import QUERIES
from services.scheduler.runs.lifecycle.run import Run, RunError, RunFinish
from tests.fakes.scheduler.stores import Stores, add, admit, empty_stores, new_run
from tests.fakes.scheduler.surroundings import SetClock

ANN, BOB, OLGA = Caller("ann"), Caller("bob"), Caller("olga", role=Role.OPERATOR)
SIGNER = WebhookSigner(b"a key of an installation")
LOOPBACK = networks_of("127.0.0.0/8")
BOTH = (NoticeEvent.RUN_ENDED, NoticeEvent.RUN_FAILED)


class NoticeSite:
    def __init__(self, pool: asyncpg.Pool, stores: Stores) -> None:
        session = PostgresSession(pool, QUERIES)
        self.pool, self.stores, self.clock = pool, stores, SetClock()
        self.targets = PostgresNoticeTargets(session)
        self.change = ChangeTargets(self.targets, self.clock, ("example.org",))
        self.events, self.outbox = PostgresEventLog(session), PostgresOutbox(session)
        post = HttpPost(LOOPBACK)
        self.dispatch = DispatchNotices(
            self.outbox,
            {NoticeChannel.WEBHOOK: WebhookSender(post, SIGNER), NoticeChannel.SLACK: SlackSender(post)},
            self.clock,
            "https://pages.example.org",
        )

    async def target(
        self,
        address: str,
        caller: Caller = ANN,
        channel: NoticeChannel = NoticeChannel.WEBHOOK,
        events: tuple[NoticeEvent, ...] = BOTH,
        **scope: object,
    ) -> NoticeTarget:
        wanted = WantedTarget(
            target_id=str(uuid4()), channel=channel, address=address, events=events, scope=NoticeScope.OWN
        )
        return await self.change.add(replace(wanted, **scope), caller)  # type: ignore[arg-type]  # its fields

    async def running(self, user: str = "ann", **order: object) -> Run:
        run = await add(self.stores, new_run(0, user, **order))
        await admit(self.stores, await self.stores.begin_term(), 1000)
        return run

    async def end(self, token: FencingToken, run: Run, error: RunError | None = None) -> bool:
        state = RunState.FAILED if error else RunState.COMPLETED
        return await self.stores.led.finish(token, run, RunFinish(state, self.clock.now(), error))

    async def ended_run(self, user: str = "ann", error: RunError | None = None, **order: object) -> Run:
        run = await self.running(user, **order)
        assert await self.end(await self.stores.begin_term(), run, error)
        return run

    async def ledger(self, caller: Caller = ANN) -> list[Notice]:
        return list((await self.targets.page(caller.name, None, 1000, None)).notices)

    async def send(self) -> None:
        token = await self.stores.begin_term()
        while await self.dispatch.send_due(token):
            pass


async def notice_site(pool: asyncpg.Pool) -> NoticeSite:
    """Nothing is in it."""
    await pool.execute("TRUNCATE notice_targets CASCADE")
    return NoticeSite(pool, await empty_stores(pool))
