"""Sends what is in the outbox: at least once each, with an id by which a receiver drops doubles."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NoReturn

from proctor.values.names.notices import NoticeChannel
from services.common.clock import Clock
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.notices.errors import NotDelivered
from services.scheduler.notices.notice import Notice, NoticeTarget, next_try
from services.scheduler.notices.ports import NoticeSender, Outbox

EVERY_SECONDS = 2.0
# Longer than an attempt may take. A leader that ends in one leaves the notice to the next after this.
LEASE = timedelta(seconds=60)
_SWEEP_SECONDS = 3600.0
KEPT = timedelta(days=30)
_MAX_PROBLEM_CHARACTERS = 300
_FAULT = "Something went wrong while it was sent; the log of the scheduler says what."

log = get_logger()


@dataclass(frozen=True, slots=True)
class DispatchNotices:
    outbox: Outbox
    senders: Mapping[NoticeChannel, NoticeSender]
    clock: Clock
    public_url: str = ""

    async def lead(self, token: FencingToken) -> NoReturn:
        """Leads until cancelled."""

        async def step() -> None:
            while await self.send_due(token):
                pass

        await every(EVERY_SECONDS, step, name="send notices")

    async def sweep(self, token: FencingToken) -> NoReturn:
        """Deletes old ones, until cancelled."""

        async def step() -> None:
            await self.outbox.delete_old(token, self.clock.now() - KEPT)

        await every(_SWEEP_SECONDS, step, name="delete old notices")

    async def send_due(self, token: FencingToken) -> bool:
        """Whether anything was due. Raises `LeadershipLost`."""
        now = self.clock.now()
        claimed = await self.outbox.claim(token, now, now + LEASE)
        sent = await asyncio.gather(*(self._sent(target, notice) for target, notice in claimed))
        for notice in sent:
            await self.outbox.settle(token, notice)
        return bool(claimed)

    async def _sent(self, target: NoticeTarget, notice: Notice) -> Notice:
        """What became of the attempt."""
        try:
            await self._send(target, notice)
        except NotDelivered as error:
            now = self.clock.now()
            log.info("notice not delivered", notice_id=notice.notice_id, problem=error.problem)
            again = None if error.is_final else next_try(notice.attempts, now)
            return replace(notice, problem=error.problem[:_MAX_PROBLEM_CHARACTERS], next_try_at=again)
        except Exception:  # of a batch: what became of the others must be stored, or they are sent again
            log.exception("notice failed", notice_id=notice.notice_id)
            again = next_try(notice.attempts, self.clock.now())
            return replace(notice, problem=_FAULT, next_try_at=again)
        return replace(notice, problem="", next_try_at=None, delivered_at=self.clock.now())

    async def _send(self, target: NoticeTarget, notice: Notice) -> None:
        sender = self.senders.get(target.channel)
        if sender is None:
            raise NotDelivered("The operator has named no server for mail.")
        await sender.send(target, self._linked(notice), self.clock.now())

    def _linked(self, notice: Notice) -> Notice:
        """With the page of its run or schedule, where the operator has said where pages are."""
        for fact, page in (("run_id", "runs"), ("schedule_id", "schedules")):
            if self.public_url and fact in notice.facts:
                link = f"{self.public_url}/{page}/{notice.facts[fact]}"
                return replace(notice, facts={**notice.facts, "page": link})
        return notice
