"""A model server that answers at once, for benches that count what everything but the model costs.

It is the reference's, in C, where PROCTOR_REFERENCE_DIR and gcc are at hand. Else it is the tests' own, in
Python, which takes half of a small machine from those that are measured.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from proctor.stack.supervision.addresses import choose_addresses
from tests.fakes.eventually import eventually
from tests.harness.model_server_process import ModelServerProcess, model_server_process

SOURCE = Path(os.environ.get("PROCTOR_REFERENCE_DIR", "")) / "fakellm" / "fakellm.c"
BUILD = ("gcc", "-O3", "-march=native", "-o")
START_SECONDS = 10.0


class InstantServer(Protocol):
    """`url` is what an OpenAI client takes as its base; the model is "fake"."""

    @property
    def url(self) -> str: ...

    async def asked(self) -> int:
        """Prompts since they were forgotten, as often as each was asked."""
        ...

    async def forget(self) -> None: ...


@dataclass(frozen=True)
class CServer:
    """The reference's."""

    address: str

    @property
    def url(self) -> str:
        return f"http://{self.address}/v1"

    async def asked(self) -> int:
        return int((await self._get("stats"))["prompts"])

    async def forget(self) -> None:
        await self._get("ctl?reset=1")

    async def is_up(self) -> bool:
        try:
            await self._get("stats")
        except aiohttp.ClientConnectorError:
            return False
        return True

    async def _get(self, path: str) -> dict[str, Any]:
        url = f"http://{self.address}/{path}"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            return dict(await response.json())


@dataclass(frozen=True)
class PythonServer:
    """The tests' own."""

    process: ModelServerProcess

    @property
    def url(self) -> str:
        return self.process.url

    async def asked(self) -> int:
        return int((await self.process.stats())["requests"])

    async def forget(self) -> None:
        await self.process.control(reset_stats=True)


@asynccontextmanager
async def instant_server(folder: Path, answer_chars: int = 0) -> AsyncIterator[InstantServer]:
    """Built in a folder, started on a free port, stopped at the end; says which it is.

    It answers "The answer is KEY." with the last key of the prompt; the one in C then goes on talking up to
    `answer_chars`.
    """
    if SOURCE.is_file() and shutil.which(BUILD[0]):
        sys.stdout.write("Model server: the reference's, in C\n")
        async with _c_server(folder / "instant-server", answer_chars) as server:
            yield server
    else:
        sys.stdout.write(
            "Model server: the tests', in Python; the reference's takes far less of the machine\n"
        )
        async with model_server_process() as process:
            yield PythonServer(process)


@asynccontextmanager
async def _c_server(program: Path, answer_chars: int) -> AsyncIterator[CServer]:
    gcc = await asyncio.create_subprocess_exec(*BUILD, str(program), str(SOURCE))
    if await gcc.wait():
        raise SystemExit(f"{SOURCE} was not built: see what gcc said above")
    [address] = choose_addresses(1)
    server = CServer(address)
    port = address.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        *(str(program), "--port", port, "--out-chars", str(answer_chars)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(server.is_up, "the model server in C is up", START_SECONDS)
        yield server
    finally:
        process.terminate()
        await process.wait()
