"""How long a batch of outcomes waits for more of them."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from proctor.v1 import work_messages_pb2
from proctor.wire.proofs import DispatchedShard
from services.results.outcomes.nats import BUSY_LINGERS, NatsOutcomeConsumer
from services.results.outcomes.outcome import OutcomeBatch
from services.results.outcomes.record_outcomes import Recorded
from tests.fakes.eventually import eventually

KEY = "0" * 64
RUN = "3f1c2a84-5b0e-4c41-9d59-3f4f6c9b2a10"
LINGER_SECONDS = 100.0
MAX_OUTCOMES = 4


async def ack() -> None:
    return None


def message(*, outcomes: int, is_last: bool = False) -> Any:
    batch = work_messages_pb2.OutcomeBatch(run_id=RUN, epoch=1, worker_id="w", is_last=is_last)
    for sample in range(outcomes):
        batch.outcomes.add(sample=sample, shard=1, attempt=1).answer.text = "A"
    batch.dispatch_proofs.append(DispatchedShard(RUN, 1, 1, 1, 0, (range(outcomes),)).proof(KEY))
    return SimpleNamespace(data=batch.SerializeToString(), subject="outcomes", headers={}, ack=ack)


class Pulls:
    """Gives one message a pull, and notes how long each was to wait; then nothing comes any more."""

    def __init__(self, *messages: Any) -> None:
        self._messages = list(messages)
        self.seconds: list[float] = []

    async def fetch(self, count: int, timeout_seconds: float) -> Sequence[Any]:
        assert count > 0
        self.seconds.append(timeout_seconds)
        if not self._messages:
            await asyncio.Event().wait()
        return [self._messages.pop(0)]

    async def close(self) -> None:
        return None


async def waited(*messages: Any) -> Sequence[float]:
    """Seconds that each pull was to wait for its message."""

    async def record(batches: Sequence[OutcomeBatch]) -> Recorded:
        return Recorded(len(batches))

    pulls = Pulls(*messages)
    consumer = NatsOutcomeConsumer(
        puller=pulls,  # type: ignore[arg-type]  # what is asked of it
        record=record,
        max_outcomes=MAX_OUTCOMES,
        linger_seconds=LINGER_SECONDS,
        dispatch_proof_key=KEY,
    )
    running = asyncio.create_task(consumer.run())
    await eventually(lambda: len(pulls.seconds) == len(messages) + 1, "all messages were pulled")
    running.cancel()
    await asyncio.wait([running])
    return pulls.seconds


async def test_batch_that_was_there_at_once_lingers_longer() -> None:
    full = message(outcomes=MAX_OUTCOMES)
    seconds = await waited(full, message(outcomes=1), message(outcomes=1))
    assert all(LINGER_SECONDS < each <= BUSY_LINGERS * LINGER_SECONDS for each in seconds[2:])


async def test_batch_with_the_last_of_a_worker_does_not() -> None:
    full, last = message(outcomes=MAX_OUTCOMES), message(outcomes=1, is_last=True)
    seconds = await waited(full, message(outcomes=1), last, message(outcomes=1))
    assert seconds[2] > LINGER_SECONDS
    assert all(each <= LINGER_SECONDS for each in seconds[3:])
