"""`proctor` as a script runs it: a process of its own, with what it said and how it ended."""

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proctor.stack.supervision.process import Program
from tests.harness.processes import output_of

ROOT = Path(__file__).parents[3]
_PROGRAM = (sys.executable, "-m", "proctor.cli")


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


class CommandLine:
    def __init__(self, gateway: str, state_dir: Path) -> None:
        own = {"PROCTOR_GATEWAY": gateway, "PROCTOR_STATE_DIR": str(state_dir), "PYTHONPATH": str(ROOT)}
        self._environment = {**os.environ, **own}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await self._start(*_PROGRAM, *arguments)

    async def piped(self, *arguments: str, into: str) -> Finished:
        """With the code of `proctor` and the output of what it was piped into."""
        script = f'"$@" | {into}; exit ${{PIPESTATUS[0]}}'
        return await ended(await self._start("bash", "-c", script, "-", *_PROGRAM, *arguments))

    async def _start(self, *command: str) -> asyncio.subprocess.Process:
        """As in the foreground of a terminal: also where the tests were started with Ctrl-C ignored."""
        return await asyncio.create_subprocess_exec(
            *Program(command).launch_line(),
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str) -> Finished:
        return await ended(await self.start(*arguments))


async def ended(process: asyncio.subprocess.Process) -> Finished:
    out, err = await output_of(process, 30)
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())
