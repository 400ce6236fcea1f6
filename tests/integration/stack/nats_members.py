"""A nats-server with the users of a stack, and connections as one of them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from nats.aio.client import Client

from proctor.stack.servers.nats import NatsServer, prepare_nats
from proctor.stack.supervision.addresses import choose_addresses
from proctor.stack.supervision.child import ChildContext, SupervisedChild
from proctor.values import messaging
from services.common.nats.connection import connect_nats
from services.common.nats.stream_maker import StreamMaker

# Of the server's answer to a ping.
WAIT_SECONDS = 2.0


@asynccontextmanager
async def nats_with_users(folder: Path, pools: Sequence[str]) -> AsyncIterator[NatsServer]:
    """With the streams and buckets that a scheduler makes."""
    [address] = choose_addresses(1)
    server = prepare_nats(folder, address, pools)
    child = SupervisedChild(
        server.child(), ChildContext(folder / "log", report=print, on_change=lambda: None)
    )
    try:
        await child.first_ready
        scheduler = await connect_nats(server.url("scheduler"), "scheduler")
        await StreamMaker(scheduler, pools).make_missing()
        await scheduler.close()
        yield server
    finally:
        await child.stop()


class Member:
    """A connection as one user, and what the server has forbidden it."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.client = Client()

    async def _note(self, error: Exception) -> None:
        self.refused.append(str(error).lower())

    async def connect(self, server: NatsServer, user: str) -> None:
        await self.client.connect(
            server.url(user), error_cb=self._note, inbox_prefix=messaging.inbox_prefix(user)
        )

    async def is_refused(self) -> bool:
        """Whether the server has forbidden something by the time that it answers a ping."""
        await self.client.flush()
        await asyncio.wait_for(self.client.flush(), WAIT_SECONDS)
        return any("permissions violation" in each for each in self.refused)


async def member(server: NatsServer, user: str) -> Member:
    made = Member()
    await made.connect(server, user)
    return made
