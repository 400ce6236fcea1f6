"""A worker with three sandboxes, for a test to kill; with the argument `sweep`, the worker after it.

With `docker SOCKET IMAGE` its sandboxes are containers.
"""

import asyncio
import sys

from services.common.sandboxes.bubblewrap.engine import BubblewrapEngine, find_bubblewrap
from services.common.sandboxes.sandbox import Command, SandboxSpec
from services.worker.sandboxes.docker.engine import DockerEngine


async def main() -> None:
    if sys.argv[1:2] == ["docker"]:
        await open_containers(*sys.argv[2:])
        return
    engine = BubblewrapEngine(find_bubblewrap())
    if sys.argv[1:] == ["sweep"]:
        print(await engine.sweep())  # noqa: T201  # the test reads it
        await engine.close()
        return
    firsts = []
    for _ in range(3):
        reply, sandbox = await engine._open(SandboxSpec())
        await sandbox.run(Command(("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")))
        firsts.append(reply["first_process"])
    print(engine.launcher.process, *firsts, flush=True)  # noqa: T201  # the test reads it
    await asyncio.Event().wait()


async def open_containers(socket: str, image: str) -> None:
    docker = DockerEngine(socket, image)
    sandboxes = [await docker.open(SandboxSpec()) for _ in range(3)]
    for sandbox in sandboxes:
        await sandbox.run(Command(("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")))
    print("3 opened", flush=True)  # noqa: T201  # the test reads it
    await asyncio.Event().wait()


asyncio.run(main())
