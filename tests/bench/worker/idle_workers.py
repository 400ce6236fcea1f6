"""Workers without work, each on a connection of its own, until standard input ends.

Run it as `python -m tests.bench.worker.idle_workers NATS FIRST COUNT`.
"""

import asyncio
import sys
from contextlib import AsyncExitStack

from services.worker.settings import WorkerSettings
from tests.fakes.worker.scripted_engine import ScriptedEngine
from tests.fakes.worker.worker_harness import worker_in_process


async def main(address: str, first: int, count: int) -> None:
    async with AsyncExitStack() as opened:
        for number in range(first, first + count):
            worker = worker_in_process(
                address, ScriptedEngine(), settings=WorkerSettings(), worker_id=f"worker-{number}"
            )
            await opened.enter_async_context(worker)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
