"""The latest counts of each run as results reports them: for dispatch and for watchers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count

from proctor.values.run import RunCounts
from services.scheduler.progress.run_speed import RunSpeed, SpeedMeter

# A waiting process asks far more often, so only runs that none shows or drives are forgotten.
_FORGET_AFTER_SECONDS = 600.0

# Changes whenever any run is touched.
ANY_RUN = ""


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """Counts of the whole run, and those of each shard whose count has changed."""

    run_id: str
    counts: RunCounts
    shards: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Entry:
    touched: float
    version: int = 0
    counts: RunCounts | None = None
    shards: dict[int, int] = field(default_factory=dict)
    meter: SpeedMeter = field(default_factory=SpeedMeter)
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class ProgressTracker:
    """One per process. Entries that nothing has touched for ten minutes are dropped: all can be had again."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._driven: set[str] = set()
        # One counter for all entries: one that was dropped and made anew never shows an old version.
        self._versions = count(1)

    def record(self, report: ProgressReport, now: float) -> None:
        """Reports may arrive out of order: totals are the highest, and so is each shard's count."""
        entry = self._entry(report.run_id, now)
        known = entry.counts
        if known is not None and report.counts.epoch < known.epoch:
            return
        if known is not None and report.counts.epoch > known.epoch:
            entry.shards.clear()
            entry.meter.clear()
        # Only the leader takes them out again; in other replicas they would pile up.
        if report.run_id in self._driven:
            for shard, recorded in report.shards.items():
                entry.shards[shard] = max(recorded, entry.shards.get(shard, 0))
        if known is None or not report.counts.is_older_than(known):
            entry.counts = report.counts
            entry.meter.add(now, report.counts)
        self._change(entry)

    def touch(self, run_id: str, now: float) -> None:
        """Wakes everything that waits for the run, because its state may have changed."""
        self._change(self._entry(run_id, now))
        self._change(self._entry(ANY_RUN, now))

    def counts(self, run_id: str, epoch: int) -> RunCounts | None:
        entry = self._entries.get(run_id)
        if entry is None or entry.counts is None or entry.counts.epoch != epoch:
            return None
        return entry.counts

    def recorded(self, run_id: str) -> int:
        """Outcomes of the latest epoch that is known; 0 for a run that nothing was reported of."""
        entry = self._entries.get(run_id)
        return entry.counts.recorded if entry and entry.counts else 0

    def keep_shards(self, run_id: str) -> None:
        """Keeps counts of the run's shards for `take_shard_counts`, because this process drives it."""
        self._driven.add(run_id)

    def drop_shards(self, run_id: str) -> None:
        """This process no longer drives the run."""
        self._driven.discard(run_id)
        self.take_shard_counts(run_id)

    def take_shard_counts(self, run_id: str) -> Mapping[int, int]:
        """Counts of shards since the last call."""
        entry = self._entries.get(run_id)
        if entry is None:
            return {}
        taken, entry.shards = entry.shards, {}
        return taken

    def speed(self, run_id: str, now: float) -> RunSpeed | None:
        """None until there are enough reports."""
        entry = self._entries.get(run_id)
        return entry.meter.speed(now) if entry else None

    def samples_per_second(self, run_id: str, now: float) -> float | None:
        """Over the last seconds; None until there are enough reports."""
        speed = self.speed(run_id, now)
        return speed.samples if speed else None

    def version(self, run_id: str) -> int:
        entry = self._entries.get(run_id)
        return entry.version if entry else 0

    async def wait_beyond(self, run_id: str, version: int, timeout_seconds: float, now: float) -> None:
        """Returns when the run has changed since `version`, or after the time."""
        entry = self._entry(run_id, now)
        if entry.version > version:
            return
        try:
            async with asyncio.timeout(timeout_seconds):
                await entry.changed.wait()
        except TimeoutError:
            return

    def forget_idle(self, now: float) -> None:
        for run_id, entry in list(self._entries.items()):
            if entry.touched < now - _FORGET_AFTER_SECONDS:
                del self._entries[run_id]

    def _entry(self, run_id: str, now: float) -> _Entry:
        entry = self._entries.setdefault(run_id, _Entry(touched=now))
        entry.touched = now
        return entry

    def _change(self, entry: _Entry) -> None:
        entry.version = next(self._versions)
        entry.changed.set()
        # Those that wait hold the old event, which stays set; a cleared one might not wake them all.
        entry.changed = asyncio.Event()
