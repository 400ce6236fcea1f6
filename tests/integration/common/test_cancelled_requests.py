"""A task that is cancelled while it asks NATS ends, also when the reply comes at the same moment."""

import asyncio
import random

from services.common.nats.connection import connect_nats
from services.common.nats.jetstream import JetStream
from services.common.nats.specs import StreamSpec
from tests.harness.servers import RunningServer

# Before each request kept them, about every second of so many cancellations met a reply.
TRIES = 200
SECONDS_TO_END = 10.0


async def test_a_cancelled_loop_of_requests_ends(nats: RunningServer) -> None:
    connection, draw = await connect_nats(nats.address, "tests"), random.Random(4)
    jetstream, spec = JetStream(connection), StreamSpec("OUTCOMES", ("outcomes.>",))

    async def ask_for_ever() -> None:
        while True:
            await jetstream.max_bytes(spec)

    try:
        for number in range(TRIES):
            asking = asyncio.create_task(ask_for_ever())
            await asyncio.sleep(draw.uniform(0.002, 0.005))
            asking.cancel()
            _, asking_still = await asyncio.wait((asking,), timeout=SECONDS_TO_END)
            assert not asking_still, f"the loop goes on after cancellation {number}"
    finally:
        await connection.close()
