"""Prefetch: how many samples the worker pulls beyond those it executes, the highest priority first."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from proctor.values.priority import Priority
from proctor.values.sample import MAX_SHARD_SAMPLES, SHARD_SAMPLES
from services.common.clock import Clock
from services.worker.execution.outcome_batcher import OutcomeBatchLimits

# How long a pull takes to arrive, and over how long the speed of the worker is measured.
_PULL_SECONDS = 0.25
_MEASURED_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class PrefetchLimits:
    """Samples executing at a time, prefetched besides, and held: those of shards in flight.

    `rollouts` are the slots for rollouts: no more are pulled, since each takes minutes.
    """

    concurrency: int
    prefetched: int
    held: int
    rollouts: int = sys.maxsize

    @classmethod
    def for_concurrency(cls, concurrency: int, rollouts: int = sys.maxsize) -> "PrefetchLimits":
        """The smallest number with which the engine never waits for a pull."""
        # A whole shard: more would wait here unused.
        prefetched = max(1, min(SHARD_SAMPLES, concurrency // 2))
        # Twice: shards stay in flight until their slowest sample is answered, and until it is stored: a batch
        # of outcomes fills up first. Where that and the engine begin and end in shards, these count whole.
        held = 2 * (concurrency + prefetched) + 2 * MAX_SHARD_SAMPLES + OutcomeBatchLimits().outcomes
        return cls(concurrency, prefetched, held, rollouts)


class PrefetchDepth:
    """The number of samples that the worker finishes during one pull.

    A fast engine would idle with fewer; behind a slow one, more would wait that another worker could execute.
    """

    def __init__(self, max_samples: int, clock: Clock) -> None:
        self._max_samples = max_samples
        self._clock = clock
        self._finished = 0
        self._per_second = 0.0
        self._since = clock.monotonic()
        # As `samples` gave it last, which a pull asks before each shard.
        self.latest = 0

    def finish(self, samples: int) -> None:
        self._finished += samples

    def samples(self) -> int:
        now = self._clock.monotonic()
        if now - self._since >= _MEASURED_SECONDS:
            self._per_second = self._finished / (now - self._since)
            self._finished, self._since = 0, now
        self.latest = min(self._max_samples, int(self._per_second * _PULL_SECONDS))
        return self.latest


class Prefetch:
    """Counts samples in this worker and decides when it pulls more. Closed, it pulls nothing."""

    def __init__(self, limits: PrefetchLimits, clock: Clock) -> None:
        self.unfinished = 0
        self.held = 0
        self._suspended = 0
        self._rollouts_in_flight: Counter[Priority] = Counter()
        self._limits = limits
        self._depth = PrefetchDepth(limits.prefetched, clock)
        # The models whose last pull brought something.
        self._flowing: dict[Priority, set[str | None]] = {priority: set() for priority in Priority}
        self._higher = {
            priority: [self._flowing[other] for other in Priority if other.is_above(priority)]
            for priority in Priority
        }
        # A condition of its own: thousands of samples finish in a second, and few waiters need to know.
        self._finished, self._changed = asyncio.Event(), asyncio.Event()
        self.closed = asyncio.Event()

    def open(self) -> None:
        """Pulls again, maybe for other models."""
        for flowing in self._flowing.values():
            flowing.clear()
        self.closed.clear()

    def close(self) -> None:
        """Stops pulling: for a model switch, a restart of the engine, or the end of the worker."""
        self.closed.set()
        # A pull that waits for room has to see that it is closed.
        self._wake_all()

    def add(self, unfinished: int, held: int) -> None:
        self.unfinished += unfinished
        self.held += held

    def take_slots(self, priority: Priority, rollouts: int) -> None:
        """Rollouts that a pull of this priority brought take slots until `free_slots`."""
        self._rollouts_in_flight[priority] += rollouts

    def free_slots(self, priority: Priority, rollouts: int) -> None:
        self._rollouts_in_flight[priority] -= rollouts
        self._changed.set()

    @property
    def rollouts_in_flight(self) -> int:
        """Rollouts that have a slot."""
        return self._rollouts_in_flight.total()

    def finish(self, samples: int) -> None:
        """These samples were executed."""
        self._depth.finish(samples)
        self.drop(samples)

    def drop(self, samples: int) -> None:
        """These samples are not executed here any more."""
        self.unfinished -= samples
        # Thousands of samples finish in a second, and most make no room: nobody is woken to see that.
        if self.unfinished < self._limits.concurrency + self._depth.latest:
            self._finished.set()

    def release(self, samples: int) -> None:
        """The shard with these samples is not in flight any more."""
        self.held -= samples
        self._changed.set()

    @contextmanager
    def suspended(self, unfinished: int, held: int) -> Iterator[None]:
        """Leaves these samples out of the counts meanwhile, so that others are pulled in their place."""
        self.add(-unfinished, -held)
        self._suspended += held
        self._wake_all()
        try:
            yield
        finally:
            self.add(unfinished, held)
            self._suspended -= held

    def lend(self, priority: Priority) -> None:
        """Leaves a rollout in flight out of the counts until `take_back`: others are pulled in its place."""
        self.add(-1, -1)
        self._suspended += 1
        self.free_slots(priority, 1)
        self._wake_all()

    def take_back(self, priority: Priority) -> None:
        self.add(1, 1)
        self._suspended -= 1
        self.take_slots(priority, 1)

    def report(self, priority: Priority, model: str | None, *, is_flowing: bool) -> None:
        """Whether the last pull for this priority and model brought anything."""
        flowing = self._flowing[priority]
        if is_flowing != (model in flowing):
            flowing.symmetric_difference_update((model,))
            self._changed.set()

    def is_idle(self) -> bool:
        return self.held == 0 and not any(self._flowing.values())

    async def until_room(self, priority: Priority) -> bool:
        """True once there is room and no higher priority brings work; False when it is closed."""
        while not self.closed.is_set():
            # Asked once: the depth of the prefetch changes with time.
            has_space = self._has_space()
            if has_space and self._may_pull(priority):
                return True
            change = self._changed if has_space else self._finished
            # No await between the checks and this: no change is lost.
            change.clear()
            await change.wait()
        return False

    async def until_empty(self) -> None:
        while self.held + self._suspended:
            self._changed.clear()
            await self._changed.wait()

    def has_room(self, priority: Priority) -> bool:
        return self._has_space() and self._may_pull(priority)

    def _may_pull(self, priority: Priority) -> bool:
        """Whether neither samples that are held, nor rollouts, nor a higher priority stop it."""
        # Lower-priority rollouts do not count against this limit.
        in_flight = self._rollouts_in_flight.items()
        rollouts = sum(count for other, count in in_flight if not priority.is_above(other))
        is_within = self.held < self._limits.held and rollouts < self._limits.rollouts
        # While a higher priority brings shards, a lower one gets no room at all.
        return is_within and not any(self._higher[priority])

    def _has_space(self) -> bool:
        """Whether fewer samples are unfinished than the engine and its prefetch take."""
        return self.unfinished < self._limits.concurrency + self._depth.samples()

    def _wake_all(self) -> None:
        self._finished.set()
        self._changed.set()
