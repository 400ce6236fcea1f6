"""The first process of a container, as the worker holds it: requests go in, each is answered by one byte."""

import asyncio

from services.common.sandboxes.errors import SandboxLost, SandboxNotOpened
from services.worker.sandboxes.container.ports import END, StartedCommand
from services.worker.sandboxes.container.programs import KILL, STARTED

_START_SECONDS = 60.0
_ANSWER_SECONDS = 10.0


class FirstProcess:
    """The container ends with the connection. It is started when it answers its first request."""

    def __init__(self, connection: StartedCommand) -> None:
        self._connection = connection
        self._asking = asyncio.Lock()

    async def wait_started(self) -> None:
        """Raises SandboxNotOpened, with the engine's own message where it wrote one."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._connection.write(KILL)
                answer = (await self._connection.read()).content
        except (TimeoutError, SandboxLost) as error:
            raise SandboxNotOpened(problem="its first process did not start.") from error
        if answer != STARTED:
            shown = answer.decode("utf-8", "replace").strip()[:200]
            raise SandboxNotOpened(problem=f"its first process did not start ({shown}).")

    async def kill_others(self) -> None:
        """Raises SandboxLost where it does not answer."""
        async with self._asking:
            await self._connection.write(KILL)
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    answer = await self._connection.read()
            except TimeoutError as error:
                raise SandboxLost(problem="its first process does not answer.") from error
            if answer == END:
                raise SandboxLost(problem="its first process ended.")

    async def close(self) -> None:
        await self._connection.close()
