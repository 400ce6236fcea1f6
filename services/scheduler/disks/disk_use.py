"""How full a disk is on which Proctor stores, and the work that stops as it fills up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from services.common.errors import DomainError, ErrorKind

# A disk that is larger counts as one of this size: of a disk of terabytes a tenth is room enough for months.
COUNTED_BYTES = 100 * 1024**3


class DiskFull(DomainError, kind=ErrorKind.UNAVAILABLE, reason="DISK_FULL"):
    """Nothing can be uploaded or restored now: {disk}. Delete or archive runs and data sets, or try later."""


class DiskStage(IntEnum):
    """What stops, in this order, as a disk fills up; each stops what is before it as well."""

    UPLOADS = 1
    NEW_RUNS = 2
    DISPATCH = 3


_STOPPED = {
    DiskStage.UPLOADS: "uploads wait",
    DiskStage.NEW_RUNS: "uploads and new runs wait",
    DiskStage.DISPATCH: "uploads and runs wait",
}


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
    """A disk that is so full that work waits for room. `resumes_below` is the share for what stopped last."""

    name: str
    used_share: float
    stage: DiskStage
    resumes_below: float

    @property
    def reason(self) -> str:
        """One clause: how full it is, what waits, and until when."""
        used, limit = f"{self.used_share:.1%}", f"{100 * self.resumes_below:.4g}%"
        return f"{self.name} is {used} full; {_STOPPED[self.stage]} until it is below {limit}"


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
        for stage, share in shares.items():
            if use.used_share >= share:
                return FullDisk(use.name, use.used_share, stage, share)
        return None


# As they are at this moment, the fullest first.
FullDisks = Callable[[], Sequence[FullDisk]]
# Why work of a stage waits at this moment; None if there is room for it.
AwaitedDisk = Callable[[DiskStage], str | None]


def no_disk_awaited(_: DiskStage) -> None:
    """There is room for everything."""
