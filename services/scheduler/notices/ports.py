"""The ports of notices: their stores, and the ways by which they are sent."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from services.scheduler.audit.audit_record import Author
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.notice import Event, Notice, NoticePage, NoticeTarget


class NoticeTargets(Protocol):
    """Targets of one user at a time, and what is told to them."""

    async def add(self, target: NoticeTarget, author: Author) -> None:
        """Changes nothing where it is there. Raises `TooManyNoticeTargets`."""
        ...

    async def list(self, user: str) -> Sequence[NoticeTarget]:
        """Latest first."""
        ...

    async def get(self, target_id: str, user: str) -> NoticeTarget:
        """Raises `NoticeTargetNotFound`, also for one of another user."""
        ...

    async def delete(self, target: NoticeTarget, author: Author) -> None: ...

    async def test(self, target: NoticeTarget, notice: Notice, author: Author) -> None:
        """Stores a notice to be sent to this target alone. Raises `TooManyTests`."""
        ...

    async def page(self, user: str, target_id: str | None, size: int, before: int | None) -> NoticePage: ...


class EventLog(Protocol):
    async def record(self, token: FencingToken, event: Event) -> None:
        """Stores what is told of an event, once for each key. Raises `LeadershipLost`."""
        ...


class Outbox(Protocol):
    """The leader's side: what is to be sent. Writes raise `LeadershipLost`."""

    async def claim(
        self, token: FencingToken, now: datetime, until: datetime
    ) -> Sequence[tuple[NoticeTarget, Notice]]:
        """Some of what is due, one attempt further; nobody else claims it until then."""
        ...

    async def settle(self, token: FencingToken, notice: Notice) -> None:
        """Stores what became of the attempt."""
        ...

    async def delete_old(self, token: FencingToken, before: datetime) -> None:
        """Deletes what was delivered or given up before."""
        ...


class NoticeSender(Protocol):
    async def send(self, target: NoticeTarget, notice: Notice, now: datetime) -> None:
        """Raises `NotDelivered`."""
        ...
