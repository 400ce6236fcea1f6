"""How full a disk is on which Proctor stores, and the work that stops as it fills up."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from services.common.errors import DomainError, ErrorKind

# Somebody has to make room; a client that repeats by itself is not to do so every second.
RETRY_AFTER_SECONDS = 60
# A disk that is larger counts as one of this size: of a disk of terabytes a tenth is room enough for months.
COUNTED_BYTES = 100 * 1024**3


class DiskFull(DomainError, kind=ErrorKind.UNAVAILABLE, reason="DISK_FULL"):
    """{disk}. Delete or archive runs and data sets; nothing is uploaded or restored until there is room."""


class DiskStage(IntEnum):
    """What stops, in this order, as a disk fills up; each stops what is before it as well."""

    UPLOADS = 1
    NEW_RUNS = 2
    DISPATCH = 3


_NAMES = {DiskStage.UPLOADS: "uploads", DiskStage.NEW_RUNS: "new runs", DiskStage.DISPATCH: "runs"}


@dataclass(frozen=True, slots=True)
class DiskUse:
    """Bytes of a disk and those that are free on it. `name` as users read it: "the disk of Postgres"."""

    name: str
    size: int
    free: int

    @property
    def used_share(self) -> float:
        """0 to 1, of at most `COUNTED_BYTES`."""
        counted = min(self.size, COUNTED_BYTES)
        return 1.0 - min(max(self.free, 0), counted) / counted if counted > 0 else 0.0


@dataclass(frozen=True, slots=True)
class FullDisk:
    """A disk that is so full that work waits for room.

    `resumes_below` has the used share at which each stage that stopped goes on, the last that stopped first.
    """

    name: str
    used_share: float
    resumes_below: Mapping[DiskStage, float]

    @property
    def stage(self) -> DiskStage:
        """The last that stopped."""
        return max(self.resumes_below)

    @property
    def reason(self) -> str:
        """One clause: how full it is, what waits, and until when."""
        return self.reason_for(*self.resumes_below)

    def reason_for(self, *stages: DiskStage) -> str:
        """The same of these stages alone."""
        limits = [(_NAMES[stage], f"{100 * self.resumes_below[stage]:.4g}%") for stage in stages]
        (first, share), *others = limits
        waits = [
            f"{first} wait until it is below {share}",
            *(f"{name} until {limit}" for name, limit in others),
        ]
        return f"{self.name} is {self.used_share:.1%} full; {', '.join(waits)}"


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """The used share from which each stage stops."""

    uploads: float
    new_runs: float
    dispatch: float

    def full(self, use: DiskUse) -> FullDisk | None:
        """None while nothing stops."""
        shares = {
            DiskStage.DISPATCH: self.dispatch,
            DiskStage.NEW_RUNS: self.new_runs,
            DiskStage.UPLOADS: self.uploads,
        }
        # A stage stops with a later one, also where an operator gives it a larger share.
        last = max((stage for stage, share in shares.items() if use.used_share >= share), default=None)
        if last is None:
            return None
        stopped = {stage: share for stage, share in shares.items() if stage <= last}
        return FullDisk(use.name, use.used_share, stopped)


# As they are at this moment, the fullest first.
FullDisks = Callable[[], Sequence[FullDisk]]
# Why work of a stage waits at this moment; None if there is room for it.
AwaitedDisk = Callable[[DiskStage], str | None]
