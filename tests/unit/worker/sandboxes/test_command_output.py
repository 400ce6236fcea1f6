"""Output of commands: what they leave in the background may hold it open, and write to it without end."""

import asyncio

from services.common.sandboxes.output import KeptOutput
from services.worker.sandboxes.container.command_output import CommandOutput
from services.worker.sandboxes.container.ports import Part
from services.worker.sandboxes.container.programs import STARTED


class Endless:
    """A command that ended at once, and left a process that writes for ever."""

    def __init__(self) -> None:
        reports = [Part(STARTED, is_control=True), Part(b"0\n", is_control=True)]
        self.parts = [*reports, Part(b"own\nen"), Part(b"en"), Part(b"dx\n")]

    async def read(self) -> Part:
        if self.parts:
            return self.parts.pop(0)
        await asyncio.sleep(0)
        return Part(b"x\n")

    async def write(self, content: bytes) -> None: ...

    async def exit_code(self) -> int | None:
        return None

    async def close(self) -> None: ...


async def test_a_process_that_writes_on_in_the_background_does_not_hold_a_command() -> None:
    kept = KeptOutput(1000)
    output = CommandOutput(Endless(), kept, mark=b"end")
    try:
        async with asyncio.timeout(20):
            assert await output.is_ended_within(600.0)
    finally:
        await output.close()
    assert output.code == 0
    assert kept.head.startswith(b"own\nenx\n")
