"""`vllm serve` as a process of its own, set up as the worker sets up its engine, for others to ask."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from proctor.stack.supervision.addresses import choose_addresses, split_address
from proctor.values.providers.pool import PoolModel
from services.worker.engines.vllm.model_files import (
    VllmSettings,
    cpu_engine_args,
    model_source,
    read_model_config,
)
from tests.fakes.eventually import eventually
from tests.harness.processes import bound

START_SECONDS = 240.0
STOP_SECONDS = 10.0


@asynccontextmanager
async def vllm_server(python: Path, served: PoolModel, log: Path) -> AsyncIterator[str]:
    """The base URL of a server that is ready; it knows the model by the name that it has in our pool."""
    [address] = choose_addresses(1)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *bound(*_command(python, served, address)),
            env={**os.environ, **_settings(served).environment(is_cpu=_is_cpu(python))},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        await eventually(lambda: _is_ready(process, address, log), "vllm serve is ready", START_SECONDS)
        yield f"http://{address}/v1"
    finally:
        await _stop(process)


def _command(python: Path, served: PoolModel, address: str) -> list[str]:
    host, port = split_address(address)
    model = _settings(served).find_model(served.name)
    defaults = cpu_engine_args(_settings(served), read_model_config(model)) if _is_cpu(python) else {}
    options = {"host": host, "port": port, "served_model_name": served.name, **defaults, **served.engine_args}
    program = [str(python), "-m", "vllm.entrypoints.cli.main", "serve", model_source(model)]
    return [*program, *_flags(options)]


def _flags(options: Mapping[str, object]) -> list[str]:
    """Of the command line: an argument that is true is a flag without a value."""
    named = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return [
        part for flag, value in named.items() for part in ([flag] if value is True else [flag, str(value)])
    ]


def _settings(served: PoolModel) -> VllmSettings:
    return VllmSettings((PoolModel(served.name, served.path, served.engine_args),))


def _is_cpu(python: Path) -> bool:
    """As the worker finds it out."""
    asks = "from importlib.metadata import version; print(version('vllm'))"
    asked = subprocess.run([python, "-c", asks], capture_output=True, text=True, check=True, timeout=60)
    return "cpu" in asked.stdout


async def _is_ready(process: asyncio.subprocess.Process, address: str, log: Path) -> bool:
    if process.returncode is not None:
        words = log.read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"vllm serve exited with {process.returncode}:\n{words[-4000:]}")
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://{address}/health") as response:
            return response.status == 200
    except aiohttp.ClientConnectionError:
        return False


async def _stop(process: asyncio.subprocess.Process) -> None:
    """With its engine: the server can hang on SIGTERM, and then both are killed."""
    if process.returncode is None:
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            os.killpg(process.pid, signal.SIGKILL)
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
