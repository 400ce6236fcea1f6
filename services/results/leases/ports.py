"""Ports of leases."""

from typing import Protocol

from services.results.leases.lease import Lease, Work


class LeaseStore(Protocol):
    """Gives each work to one replica. Leases end by the store's clock."""

    async def acquire(self, work: Work, seconds: float) -> Lease | None:
        """None while it is leased, also by this replica, and for a run that is gone."""
        ...

    async def share(self, work: Work) -> float:
        """How far the replica is that holds it."""
        ...

    async def renew(self, work: Work, share: float, seconds: float) -> bool:
        """Holds it from now on for so long; False where it was taken away."""
        ...

    async def withdraw(self, work: Work) -> None:
        """Takes it from the replica that holds it, if one does; the next lease is withdrawn."""
        ...

    async def release(self, work: Work, *, counts: bool) -> None:
        """Ends this replica's lease: another may acquire it at once. The start counts, or is forgotten."""
        ...

    async def reset(self, work: Work) -> None:
        """Forgets how often it was begun, unless a replica holds it."""
        ...

    async def delete(self, work: Work) -> None:
        """Ends this replica's lease: the work is done."""
        ...
