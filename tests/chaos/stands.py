"""The stack that the tests of a module strike and share, and how it is struck."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats

from proctor.stack.supervision.child import SupervisedChild
from tests.chaos.struck_run import ROWS
from tests.fakes.eventually import eventually
from tests.fakes.state_dir import temporary_state_dir
from tests.whole_stack import StackOrder, WholeStack, whole_stack


@asynccontextmanager
async def struck_stack() -> AsyncIterator[WholeStack]:
    with temporary_state_dir() as state_dir:
        async with whole_stack(state_dir.parent, StackOrder(rows=ROWS)) as standing:
            yield standing


def pids_of(standing: WholeStack) -> dict[str, int | None]:
    return {name: child.pid for name, child in standing.stack.children.items()}


async def kill(standing: WholeStack, name: str) -> None:
    await kill_child(standing.stack.child(name))


async def kill_child(child: SupervisedChild) -> None:
    """`kill -9` of a child that is up; returns when the supervisor has noticed."""
    name = child.spec.name
    await eventually(child.ready.is_set, f"{name} is up to be killed", 30)
    assert child.pid is not None
    restarts = child.restarts
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: child.restarts > restarts, f"the death of {name} is noticed")


async def wipe(standing: WholeStack) -> None:
    """Streams, consumers, messages and buckets: a bucket is a stream too."""
    connection = await nats.connect(standing.stack.nats_url)
    try:
        jetstream = connection.jetstream()
        names = [str(info.config.name) for info in await jetstream.streams_info()]
        assert {"WORK", "OUTCOMES", "KV_RUNS", "KV_WORKERS"} <= set(names)
        for name in names:
            await jetstream.delete_stream(name)
    finally:
        await connection.close()
