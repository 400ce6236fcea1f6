"""Samples on their way to results: the next are put together while the last ones are being stored."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from proctor.values.scoring import TaskScoring
from services.scheduler.planning.ports import RunRecord
from services.scheduler.suites.rendering.sample import RenderedSample

# Results unpacks one while Postgres stores the other.
CHUNKS_ON_THEIR_WAY = 2


@asynccontextmanager
async def storing_samples(
    record: RunRecord, staging_id: str, scoring: TaskScoring | None
) -> AsyncIterator[Callable[[Sequence[RenderedSample]], Awaitable[None]]]:
    """Gives what puts a chunk and waits only where too many are on their way; at the end all are stored.

    With a `scoring` results takes only samples that can be scored so. The first failure, here or of what is
    done meanwhile, ends both and is raised as it is.
    """
    room = asyncio.Semaphore(CHUNKS_ON_THEIR_WAY)

    async def store(chunk: Sequence[RenderedSample]) -> None:
        try:
            await record.put_samples(staging_id, chunk, scoring)
        finally:
            room.release()

    try:
        async with asyncio.TaskGroup() as on_their_way:

            async def put(chunk: Sequence[RenderedSample]) -> None:
                await room.acquire()
                on_their_way.create_task(store(chunk), name="put samples")

            yield put
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
