"""Port of scaling: the store of the computed demand of each pool."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from services.scheduler.leadership.leader_election import FencingToken
from services.scheduler.scaling.pool_demand import PoolDemand


@dataclass(frozen=True, slots=True)
class StoredDemands:
    """Demands by pool, and when the leader computed them last; None if it never has."""

    by_pool: Mapping[str, PoolDemand] = field(default_factory=dict)
    computed_at: datetime | None = None


class DemandStore(Protocol):
    async def demands(self) -> StoredDemands: ...

    async def keep(self, token: FencingToken, demands: Sequence[PoolDemand], now: datetime) -> None:
        """Replaces what is stored. Raises `LeadershipLost` once another scheduler leads."""
        ...
