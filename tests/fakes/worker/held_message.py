"""A work message in memory that notes what became of it, and a publisher that a test can hold back."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from proctor.values.run import RunId
from proctor.values.sample import Prompt
from proctor.values.scoring import ScoringMethod
from services.worker.engines.engine import Sampling
from services.worker.execution.shard import OutcomeBatch, Shard, ShardSample

FAR_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def a_shard(
    *samples: int,
    run_id: str = "run-1",
    number: int = 1,
    attempt: int = 1,
    epoch: int = 1,
    method: ScoringMethod = ScoringMethod.GENERATE,
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


class FakeShardMessage:
    def __init__(self, shard: Shard, failed_deliveries: int = 0, message_id: str = "") -> None:
        self.shard = shard
        samples = ",".join(str(sample.number) for sample in shard.samples)
        self.message_id = message_id or f"{shard.run_id}/{shard.number}/{shard.attempt}/{samples}"
        self.failed_deliveries = failed_deliveries
        self.trace = ""
        self.fate: list[str] = []
        self.rest: tuple[int, ...] = ()
        self.rest_failed_deliveries = -1
        self.singles: list[int] = []
        self.extended = 0
        self.on_send: Callable[[], None] = lambda: None

    async def acknowledge(self) -> None:
        self.fate.append("acknowledged")

    async def nack(self, delay_seconds: float) -> None:
        assert delay_seconds > 0
        self.fate.append("nacked")

    async def terminate(self) -> None:
        self.fate.append("terminated")

    async def extend_ack_deadline(self) -> None:
        self.extended += 1

    async def send_rest(self, samples: Sequence[int], *, failed_deliveries: int) -> None:
        self.rest, self.rest_failed_deliveries = tuple(samples), failed_deliveries
        self.on_send()

    async def send_single(self, sample: int) -> None:
        self.singles.append(sample)
        self.on_send()


class MemoryQuarantine:
    """Executions of samples alone that have not ended."""

    def __init__(self) -> None:
        self.begun: Counter[tuple[RunId, int]] = Counter()

    async def begin(self, shard: Shard, sample: int) -> int:
        self.begun[shard.run_id, sample] += 1
        return self.begun[shard.run_id, sample] - 1

    async def end(self, shard: Shard, sample: int) -> None:
        del self.begun[shard.run_id, sample]


class HeldBackPublisher:
    """Publishes nothing until a test lets it; can be set to refuse."""

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
