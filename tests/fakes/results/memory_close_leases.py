"""Leases to close a run, in memory."""

from collections import Counter

from services.results.summaries.ports import CloseLease


class MemoryCloseLeases:
    """Leases of one process, which end when they are released: there is no clock."""

    def __init__(self) -> None:
        self.starts: Counter[tuple[str, int]] = Counter()
        self.held: dict[tuple[str, int], float] = {}
        self.withdrawn: set[tuple[str, int]] = set()

    async def acquire(self, run_id: str, epoch: int, seconds: float) -> CloseLease | None:  # noqa: ARG002  # the port's
        key = run_id, epoch
        if key in self.held:
            return None
        self.held[key] = 0.0
        self.starts[key] += 1
        return CloseLease(self.starts[key], key in self.withdrawn)

    async def share(self, run_id: str, epoch: int) -> float:
        return self.held.get((run_id, epoch), 1.0)

    async def renew(self, run_id: str, epoch: int, share: float, seconds: float) -> bool:  # noqa: ARG002  # the port's
        is_held = (run_id, epoch) in self.held
        if is_held:
            self.held[run_id, epoch] = share
        return is_held

    async def withdraw(self, run_id: str, epoch: int) -> None:
        self.withdrawn.add((run_id, epoch))
        self.held.pop((run_id, epoch), None)
        del self.starts[run_id, epoch]

    async def release(self, run_id: str, epoch: int, *, counts: bool) -> None:
        if self.held.pop((run_id, epoch), None) is not None and not counts:
            self.starts[run_id, epoch] -= 1

    async def delete(self, run_id: str, epoch: int) -> None:
        self.held.pop((run_id, epoch), None)
        del self.starts[run_id, epoch]
