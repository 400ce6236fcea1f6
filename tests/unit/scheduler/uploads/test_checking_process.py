"""Permissions of the process that reads a hostile file: it has the scheduler store its own parts, no more."""

import asyncio
import io
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import pytest
import uvloop

from services.common.child_process import ChildProcess
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import RowFacts
from services.scheduler.uploads.errors import CheckStopped
from services.scheduler.uploads.processes.checking import CheckingProcess, _Result, start_check
from tests.fakes.storage.memory_objects import MemoryObjects

UPLOADS = "services.scheduler.uploads.processes.checking"


def frame_of(module: str, name: str) -> bytes:
    """A pickle of a global, as protocol 4 and later write it."""
    names = b"".join(b"\x8c" + bytes([len(text)]) + text.encode() for text in (module, name))
    return b"\x80\x04" + names + b"\x93."


@pytest.mark.parametrize(
    "name", ["asyncio.events.subprocess.Popen", "ChildProcess", "partial", "start_check"]
)
def test_result_names_nothing_but_types_of_uploads(name: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match="not a value of an upload"):
        _Result(io.BytesIO(frame_of(UPLOADS, name))).load()


def test_result_may_have_values_of_uploads() -> None:
    assert _Result(io.BytesIO(pickle.dumps(RowFacts, protocol=5))).load() is RowFacts


class Elsewhere:
    """Stores where another upload is."""

    def __init__(self, objects: MemoryObjects) -> None:
        self.objects = objects

    def check(self, chunks: Iterable[bytes]) -> None:
        for _ in chunks:
            self.objects.put("datasets/of-another/rows-000000.jsonl.zst", [b"forged"])


async def test_check_stores_nothing_outside_its_upload() -> None:
    objects = MemoryObjects()
    uploads = Uploads(UploadLimits(uploads=1, per_user=1, seconds=60), start_check)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    with pytest.raises(CheckStopped):
        await uploads.run_check(chunks(), Elsewhere(objects).check, objects, ("datasets/own/",))
    assert objects.contents == {}


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_process_that_ended_early_is_a_check_that_was_stopped(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def feed() -> None:
        child = await ChildProcess.start(("true",), {})
        checking = CheckingProcess(child, MemoryObjects(), ())
        await asyncio.to_thread(child.process.wait)
        for _ in range(20):
            await checking.add(b"x" * 100_000)
        await checking.finish()
        with pytest.raises(CheckStopped):
            await checking.result()
        await checking.end(is_done=False)

    run(feed())
