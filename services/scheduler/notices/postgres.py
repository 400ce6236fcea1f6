"""Notices in Postgres: their targets, and the outbox that is written in the transaction of each event."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg

from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.leadership.postgres import run_as_leader, write_as_leader
from services.scheduler.notices.errors import NoticeTargetNotFound, TooManyNoticeTargets, TooManyTests
from services.scheduler.notices.notice import MAX_ATTEMPTS, Event, Notice, NoticePage, NoticeTarget

MAX_OF_USER = 20
# In an hour: each is a request to an address that its user chose.
MAX_TESTS = 20


async def record_event(transaction: PostgresTransaction, event: Event) -> None:
    """In the transaction that makes the event. Repeated, it changes nothing."""
    await transaction.execute(
        "add_notices",
        event_key=event.key,
        kinds=list(event.kinds),
        username=event.user,
        project_id=event.project_id,
        text=event.text,
        facts=json.dumps(dict(event.facts)),
        created_at=event.at,
    )


class PostgresEventLog:
    """Events that nothing else is stored of."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def record(self, token: FencingToken, event: Event) -> None:
        await run_as_leader(self._session, token, lambda transaction: record_event(transaction, event))


class PostgresNoticeTargets:
    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def add(self, target: NoticeTarget, author: Author) -> None:
        async def add(transaction: PostgresTransaction) -> None:
            added = await transaction.fetchval(
                "add_notice_target",
                target_id=target.target_id,
                username=target.user,
                channel=target.channel,
                address=target.address,
                events=list(target.events),
                scope=target.scope,
                project_id=target.project_id,
                created_at=target.created_at,
            )
            if added is None:
                return
            if await transaction.fetchval("count_notice_targets", username=target.user) > MAX_OF_USER:
                raise TooManyNoticeTargets(limit=MAX_OF_USER)
            await record_change(transaction, _change(target, Action.CREATE, author))

        await self._session.run(add)

    async def list(self, user: str) -> Sequence[NoticeTarget]:
        rows = await self._session.fetch("list_notice_targets", username=user)
        return [_target_from_row(row, row["created_at"]) for row in rows]

    async def get(self, target_id: str, user: str) -> NoticeTarget:
        row = await self._session.fetchrow("find_notice_target", target_id=target_id, username=user)
        if row is None:
            raise NoticeTargetNotFound(target_id=target_id)
        return _target_from_row(row, row["created_at"])

    async def delete(self, target: NoticeTarget, author: Author) -> None:
        async def delete(transaction: PostgresTransaction) -> None:
            if await transaction.fetchval("delete_notice_target", target_id=target.target_id) is not None:
                await record_change(transaction, _change(target, Action.DELETE, author))

        await self._session.run(delete)

    async def test(self, target: NoticeTarget, notice: Notice, author: Author) -> None:
        async def add(transaction: PostgresTransaction) -> None:
            # One after the other: two calls at once would both count one too few.
            await transaction.fetch("lock_notice_targets", username=target.user)
            since = notice.created_at - timedelta(hours=1)
            tests = await transaction.fetchval("count_tests", username=target.user, since=since)
            if tests >= MAX_TESTS:
                raise TooManyTests(limit=MAX_TESTS)
            await transaction.execute(
                "add_notice",
                notice_id=notice.notice_id,
                target_id=target.target_id,
                event_key=f"test {notice.notice_id}",
                event=notice.event,
                text=notice.text,
                facts=json.dumps(dict(notice.facts)),
                created_at=notice.created_at,
            )
            await record_change(transaction, _change(target, Action.ADD, author))

        await self._session.run(add)

    async def page(self, user: str, target_id: str | None, size: int, before: int | None) -> NoticePage:
        # One more than is shown: then there is a next page.
        rows = await self._session.fetch(
            "list_notices",
            username=user,
            target_id=target_id,
            before_notice_number=before,
            limit=size + 1,
        )
        last = rows[size - 1]["notice_number"] if len(rows) > size else None
        return NoticePage([_notice_from_row(row) for row in rows[:size]], last)


class PostgresOutbox:
    """What the leader sends."""

    def __init__(self, session: PostgresSession) -> None:
        self._session = session

    async def claim(
        self, token: FencingToken, now: datetime, until: datetime
    ) -> Sequence[tuple[NoticeTarget, Notice]]:
        async def claim(transaction: PostgresTransaction) -> Sequence[tuple[NoticeTarget, Notice]]:
            rows = await transaction.fetch(
                "claim_notices", now=now, claimed_until=until, max_attempts=MAX_ATTEMPTS
            )
            return [(_target_from_row(row, row["target_created_at"]), _notice_from_row(row)) for row in rows]

        return await run_as_leader(self._session, token, claim)

    async def settle(self, token: FencingToken, notice: Notice) -> None:
        await write_as_leader(
            self._session,
            token,
            "settle_notice",
            notice_id=notice.notice_id,
            attempts=notice.attempts,
            problem=notice.problem,
            next_try_at=notice.next_try_at,
            delivered_at=notice.delivered_at,
        )

    async def delete_old(self, token: FencingToken, before: datetime) -> None:
        await write_as_leader(self._session, token, "delete_old_notices", created_before=before)


def _change(target: NoticeTarget, action: Action, author: Author) -> Change:
    # Without its address: every user sees changes.
    detail, kind = f"{target.user}: {target.channel}", ObjectKind.NOTICE_TARGET
    return Change(author, action, kind, target.target_id, detail, target.project_id)


def _target_from_row(row: asyncpg.Record, created_at: datetime) -> NoticeTarget:
    return NoticeTarget(
        target_id=str(row["target_id"]),
        user=row["username"],
        channel=NoticeChannel(row["channel"]),
        address=row["address"],
        events=tuple(map(NoticeEvent, row["events"])),
        created_at=created_at,
        scope=NoticeScope(row["scope"]),
        project_id=row["project_id"],
    )


def _notice_from_row(row: asyncpg.Record) -> Notice:
    return Notice(
        notice_id=str(row["notice_id"]),
        target_id=str(row["target_id"]),
        event=NoticeEvent(row["event"]),
        text=row["text"],
        facts=json.loads(row["facts"]),
        created_at=row["created_at"],
        attempts=row["attempts"],
        delivered_at=row["delivered_at"],
        next_try_at=row["next_try_at"],
        problem=row["problem"],
    )
