"""`proctor` as a script runs it: a process of its own, with what it said and how it ended."""

import asyncio
import os
import sys
from pathlib import Path

from proctor.stack.supervision.process import Program
from tests.fakes.stack.forked_commands import Finished, forked
from tests.harness.forks.server import ROOT
from tests.harness.processes import output_of

LIMIT_SECONDS = 60.0
_PROGRAM = (sys.executable, "-m", "proctor.cli")


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

    async def told(self, lines: str, *arguments: str) -> Finished:
        """With lines on its standard input."""
        script = 'printf %s "$0" | "$@"'
        return await ended(await self._start("bash", "-c", script, lines, *_PROGRAM, *arguments))

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
        return await forked(arguments, self._environment, LIMIT_SECONDS)


async def ended(process: asyncio.subprocess.Process) -> Finished:
    out, err = await output_of(process, LIMIT_SECONDS)
    assert process.returncode is not None
    return Finished(process.returncode, out.decode(), err.decode())
