"""Targets of notices: added, deleted, tried."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import uuid4

from proctor.values.generation import Problem
from proctor.values.names.notices import NoticeChannel, NoticeEvent, NoticeScope
from proctor.values.names.user import Caller
from services.common.checked_fields import invalid_field, refuse
from services.common.clock import Clock
from services.common.errors import OperatorsOnly
from services.common.requests.request_fields import check_sees, project_problem
from services.scheduler.audit.audit_record import Author
from services.scheduler.notices.notice import Notice, NoticeTarget
from services.scheduler.notices.ports import NoticeTargets

_MAX_ADDRESS = 2048
# An encoded word (RFC 2047), "=?utf-8?q?…?=", is decoded in the head of a mail: to another address, or lines.
_MAIL = re.compile(r"(?!.*=\?)[^@\s<>\"(),;:\\\[\]]+@([A-Za-z0-9.-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTarget:
    """The id is the same in each repetition of a call."""

    target_id: str
    channel: NoticeChannel
    address: str
    events: tuple[NoticeEvent, ...]
    scope: NoticeScope
    project_id: int = 0


@dataclass(frozen=True, slots=True)
class ChangeTargets:
    """`mail_domains` are those that mail may be sent to; none means that there is no mail."""

    targets: NoticeTargets
    clock: Clock
    mail_domains: Collection[str] = ()

    async def add(self, wanted: WantedTarget, caller: Caller) -> NoticeTarget:
        """Raises `InvalidParameter`, `OperatorsOnly`, `ProjectNotFound` or `TooManyNoticeTargets`."""
        refuse(self._address_problem(wanted.channel, wanted.address))
        if not wanted.events or NoticeEvent.TEST in wanted.events:
            known = ", ".join(event for event in NoticeEvent if event is not NoticeEvent.TEST)
            raise invalid_field("events", f"must be some of {known}")
        project_id = self._project(wanted, caller)
        author = Author(caller.name, self.clock.now())
        target = NoticeTarget(
            target_id=wanted.target_id,
            user=caller.name,
            channel=wanted.channel,
            address=wanted.address,
            events=tuple(sorted(set(wanted.events))),
            created_at=author.at,
            scope=wanted.scope,
            project_id=project_id,
        )
        await self.targets.add(target, author)
        return await self.targets.get(wanted.target_id, caller.name)

    async def delete(self, target_id: str, caller: Caller) -> None:
        """Raises `NoticeTargetNotFound`."""
        target = await self.targets.get(target_id, caller.name)
        await self.targets.delete(target, Author(caller.name, self.clock.now()))

    async def test(self, target_id: str, caller: Caller) -> Notice:
        """Raises `NoticeTargetNotFound` and `TooManyTests`."""
        target = await self.targets.get(target_id, caller.name)
        author = Author(caller.name, self.clock.now())
        notice = Notice(
            notice_id=str(uuid4()),
            target_id=target.target_id,
            event=NoticeEvent.TEST,
            text=f"A test, which {caller.name} asked for.",
            created_at=author.at,
            next_try_at=author.at,
        )
        await self.targets.test(target, notice, author)
        return notice

    def _project(self, wanted: WantedTarget, caller: Caller) -> int:
        """The project of the target; 0 where it has none."""
        refuse(project_problem(wanted.project_id))
        if wanted.scope is NoticeScope.ALL and not caller.is_operator:
            raise OperatorsOnly(user=caller.name)
        # Own runs are in any project, and such a key hears of one.
        if wanted.scope is NoticeScope.OWN and caller.key_project:
            raise invalid_field(
                "scope", "is own, but a key that is bound to a project is told of its runs only"
            )
        if wanted.scope is not NoticeScope.PROJECT:
            return 0
        check_sees(caller, wanted.project_id)
        return wanted.project_id

    def _address_problem(self, channel: NoticeChannel, address: str) -> Problem | None:
        if len(address) > _MAX_ADDRESS or not address.isprintable():
            return Problem("address", f"address must be at most {_MAX_ADDRESS} printable characters.")
        if channel is not NoticeChannel.EMAIL:
            return _url_problem(address)
        if not self.mail_domains:
            return Problem("channel", "channel is email, but the operator has named no server for mail.")
        found = _MAIL.fullmatch(address)
        if not found:
            return Problem("address", "address is no mail address such as ann@example.org.")
        if found[1].lower() not in self.mail_domains:
            domains = ", ".join(sorted(self.mail_domains))
            return Problem("address", f"address is at {found[1]}, but mail goes to {domains} only.")
        return None


def _url_problem(address: str) -> Problem | None:
    """Where a host leads is checked at each attempt: names change what they stand for."""
    try:
        parts = urlsplit(address)
        is_url = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port)
    except ValueError:
        is_url = False
        parts = urlsplit("")
    if not is_url:
        return Problem("address", "address is no URL that begins with https:// and names a host.")
    if parts.username is not None or parts.password is not None:
        return Problem("address", "address has a user or password; leave them out, notices are signed.")
    return None
