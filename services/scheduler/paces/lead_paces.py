"""What the one leader does for paces: settle each from what all workers reported, and grant it to them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from services.common.clock import Clock
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.scheduler.paces.pace import RateQuota
from services.scheduler.paces.pace_board import FORGET_AFTER_SECONDS, PaceBoard
from services.scheduler.paces.pace_grant import settle
from services.scheduler.paces.ports import PaceGrants
from services.scheduler.paces.rate_limit import RateLimit

log = get_logger()

_ROUND_SECONDS = 0.5
# A bucket that was wiped has its grants again after this time.
_REMIND_SECONDS = 10.0
# A share that changes by less is not worth a message.
_SMALL_CHANGE = 0.1


@dataclass(frozen=True, slots=True)
class _Told:
    grant: RateQuota
    at: float


@dataclass(frozen=True)
class LeadPaces:
    """Begins a term; what was granted before stands until it is known better."""

    board: PaceBoard
    grants: PaceGrants
    clock: Clock

    async def lead(self) -> NoReturn:
        await every(_ROUND_SECONDS, PaceTerm(self).settle_all, name="settle paces")


class PaceTerm:
    def __init__(self, lead: LeadPaces) -> None:
        self._lead = lead
        self._limits: dict[str, RateLimit] | None = None
        self._told: dict[str, _Told] = {}
        self._began_at = lead.clock.monotonic()

    async def settle_all(self) -> None:
        now = self._lead.clock.monotonic()
        limits = await self._known_limits(now)
        self._lead.board.forget_idle(now)
        meters = self._lead.board.meters
        for pace, meter in meters.items():
            limit = limits.setdefault(pace, RateLimit(now))
            await self._tell(pace, settle(meter, limit, now, self._lead.clock.now()), now)
        if now - self._began_at >= FORGET_AFTER_SECONDS:
            for pace in limits.keys() - meters.keys():
                await self._lead.grants.drop(pace)
                del limits[pace]
                self._told.pop(pace, None)

    async def _known_limits(self, now: float) -> dict[str, RateLimit]:
        if self._limits is None:
            stored = await self._lead.grants.stored()
            self._limits = {pace: RateLimit(now, grant.requests_per_second) for pace, grant in stored.items()}
        return self._limits

    async def _tell(self, pace: str, grant: RateQuota, now: float) -> None:
        told = self._told.get(pace)
        if told is None and not grant.says_something:
            return
        if told is not None and now < told.at + _REMIND_SECONDS and _is_close(told.grant, grant):
            return
        await self._lead.grants.put(pace, grant)
        if told is None or told.grant.requests_per_second != grant.requests_per_second:
            log.info("pace granted", pace=pace, requests_per_second=grant.requests_per_second)
        self._told[pace] = _Told(grant, now)


def _is_close(one: RateQuota, other: RateQuota) -> bool:
    limits = [(each.requests_per_second, each.tokens_per_second, each.resume_at) for each in (one, other)]
    return limits[0] == limits[1] and _are_close(one.shares, other.shares)


def _are_close(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(abs(share - other[worker]) <= _SMALL_CHANGE * share for worker, share in one.items())
