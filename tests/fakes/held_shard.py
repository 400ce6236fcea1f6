"""A work message in memory that notes what became of it, and a publisher that a test can hold back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from services.worker.engines.engine import Prompt, Sampling
from services.worker.execution.shard import Method, OutcomeBatch, RunId, Shard, ShardSample

FAR_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def a_shard(
    *samples: int,
    run_id: str = "run-1",
    number: int = 1,
    attempt: int = 1,
    epoch: int = 1,
    method: Method = Method.GENERATE,
    deadline: datetime = FAR_FUTURE,
    choices: tuple[str, ...] = (),
) -> Shard:
    return Shard(
        run_id=RunId(run_id),
        number=number,
        attempt=attempt,
        epoch=epoch,
        model="openai/fake",
        task="addition",
        rollout=0,
        samples=tuple(ShardSample(sample, Prompt(text=f"sample {sample}"), choices) for sample in samples),
        method=method,
        sampling=Sampling(max_tokens=8),
        truncate_left=False,
        deadline=deadline,
    )


class HeldShard:
    def __init__(self, shard: Shard, faults: int = 0, message_id: str = "") -> None:
        self.shard = shard
        self.message_id = message_id
        self.faults = faults
        self.fate: list[str] = []
        self.rest: tuple[int, ...] = ()
        self.rest_faults = -1
        self.singles: list[int] = []
        self.kept = 0
        self.on_send: Callable[[], None] = lambda: None

    async def acknowledge(self) -> None:
        self.fate.append("acknowledged")

    async def give_back(self, delay_seconds: float) -> None:
        assert delay_seconds > 0
        self.fate.append("given back")

    async def drop(self) -> None:
        self.fate.append("dropped")

    async def keep(self) -> None:
        self.kept += 1

    async def send_rest(self, samples: Sequence[int], *, faults: int) -> None:
        self.rest, self.rest_faults = tuple(samples), faults
        self.on_send()

    async def send_single(self, sample: int) -> None:
        self.singles.append(sample)
        self.on_send()


class HeldBackPublisher:
    """Publishes nothing until told to go on; may be told to refuse."""

    def __init__(self) -> None:
        self.may_publish = asyncio.Event()
        self.refusal: Exception | None = None
        self.batches: list[OutcomeBatch] = []
        self.ids: list[str] = []

    async def publish(self, batch: OutcomeBatch, message_id: str) -> None:
        await self.may_publish.wait()
        if self.refusal is not None:
            raise self.refusal
        self.batches.append(batch)
        self.ids.append(message_id)

    @property
    def samples(self) -> list[int]:
        return [outcome.sample for batch in self.batches for outcome in batch.outcomes]
