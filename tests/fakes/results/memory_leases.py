"""Leases in memory."""

from collections import Counter

from services.results.leases.lease import Lease, Work


class MemoryLeases:
    """Leases of one process, which end when they are released: there is no clock."""

    def __init__(self) -> None:
        self.starts: Counter[Work] = Counter()
        self.held: dict[Work, float] = {}
        self.withdrawn: set[Work] = set()

    async def acquire(self, work: Work, seconds: float) -> Lease | None:  # noqa: ARG002  # the port's
        if work in self.held:
            return None
        self.held[work] = 0.0
        self.starts[work] += 1
        return Lease(work, self.starts[work], work in self.withdrawn)

    async def share(self, work: Work) -> float:
        return self.held.get(work, 1.0)

    async def renew(self, work: Work, share: float, seconds: float) -> bool:  # noqa: ARG002  # the port's
        is_held = work in self.held
        if is_held:
            self.held[work] = share
        return is_held

    async def withdraw(self, work: Work) -> None:
        self.withdrawn.add(work)
        self.held.pop(work, None)
        del self.starts[work]

    async def release(self, work: Work, *, counts: bool) -> None:
        if self.held.pop(work, None) is not None and not counts:
            self.starts[work] -= 1

    async def reset(self, work: Work) -> None:
        if work not in self.held:
            del self.starts[work]
            self.withdrawn.discard(work)

    async def delete(self, work: Work) -> None:
        self.held.pop(work, None)
        del self.starts[work]
