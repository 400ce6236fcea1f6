"""Permissions of the process that reads a hostile file: it has the scheduler store its own parts, no more."""

import asyncio
import pickle
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop

from services.common.processes.child_process import ChildProcess
from services.common.processes.frames import head_of
from services.common.processes.plain_values import to_bytes
from services.scheduler.uploads.checking.check_file import CheckedFile
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import DatasetFormat, RowFacts
from services.scheduler.uploads.errors import CheckStopped, DatasetTooLarge, FaultKind
from services.scheduler.uploads.faults import DatasetFault
from services.scheduler.uploads.ports import CheckJob
from services.scheduler.uploads.processes.check_frames import (
    ERROR,
    MAX_FRAME_BYTES,
    PUT,
    RESULT,
    joined_key,
)
from services.scheduler.uploads.processes.checking import CheckingProcess, start_check
from tests.fakes.storage.hostile_checks import WriteFrames
from tests.fakes.storage.memory_objects import MemoryObjects
from tests.fakes.thorough_cases import first_cases

OWN = "datasets/own/"
FAULTS = (DatasetFault(3, "prompt", "It is 'new' — and \U0001f600.", FaultKind.DUPLICATE, "{"),)
CHECKED = CheckedFile("d", 2**40, DatasetFormat.PARQUET, RowFacts(2, 1, ("m",), ""), FAULTS, 1, 7)


async def checked(check: WriteFrames, objects: MemoryObjects) -> CheckedFile:
    uploads = Uploads(UploadLimits(uploads=1, per_user=1, seconds=60), start_check, lambda: None)

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x"

    return await uploads.run_check(chunks(), check.job, objects, ("datasets/own",))


async def test_result_and_objects_are_those_of_the_process() -> None:
    objects = MemoryObjects()
    frames = (PUT, joined_key(f"{OWN}rows") + b"content"), (RESULT, to_bytes(CHECKED))
    assert await checked(WriteFrames(frames), objects) == CHECKED
    assert objects.contents == {f"{OWN}rows": b"content"}


async def test_error_is_raised_with_its_facts() -> None:
    facts = {"limit": 3, "unit": "rows", "when": ""}
    with pytest.raises(DatasetTooLarge, match="more than 3 rows") as raised:
        await checked(WriteFrames(((ERROR, to_bytes(("DatasetTooLarge", facts))),)), MemoryObjects())
    assert raised.value.facts == facts


FORGED = {
    "object of another upload": (PUT, joined_key("datasets/of-another/rows-000000.jsonl.zst") + b"forged"),
    "object beside its own": (PUT, joined_key("datasets/owned/rows") + b"forged"),
    "object above its own": (PUT, joined_key(f"{OWN}../of-another/rows") + b"forged"),
    "object without a key": (PUT, b"\xff"),
    "object with a key that is no text": (PUT, b"\x01\x00\xff"),
    "pickle": (RESULT, pickle.dumps(CHECKED)),
    "result of another type": (RESULT, to_bytes({"digest": "d"})),
    "result with a word that is none of the enum": (
        RESULT,
        to_bytes({"digest": "d", "size_bytes": 1, "format": "exe", "facts": None}),
    ),
    "result with a number too many": (RESULT, to_bytes(CHECKED) + b"\x01"),
    "result that is cut off": (RESULT, to_bytes(CHECKED)[:-1]),
    "result that is nested without end": (RESULT, b"\x91" * 1_000_000),
    "text that is no UTF-8": (RESULT, b"\x81\xa6digest\xa1\xff"),
    "error of another kind": (ERROR, to_bytes(("CheckedFile", {}))),
    "error without its facts": (ERROR, to_bytes(("DatasetTooLarge", {}))),
    "error with a fact named self": (ERROR, to_bytes(("DatasetTooLarge", {"self": "x"}))),
    "unknown kind": (b"?", b""),
}


@first_cases(4, "frame", FORGED.values(), ids=FORGED)
async def test_what_is_no_result_of_its_job_is_a_check_that_was_stopped(frame: tuple[bytes, bytes]) -> None:
    objects = MemoryObjects()
    with pytest.raises(CheckStopped):
        await checked(WriteFrames((frame,)), objects)
    assert objects.contents == {}


@pytest.mark.parametrize(
    "end",
    [b"", RESULT, head_of(RESULT, b"four"), head_of(RESULT, b"four") + b"abc", RESULT + b"\xff" * 8],
    ids=["nothing", "half a head", "no content", "half of the content", "length without end"],
)
async def test_frame_that_is_not_whole_is_a_check_that_was_stopped(end: bytes) -> None:
    with pytest.raises(CheckStopped):
        await checked(WriteFrames((), end), MemoryObjects())


async def test_length_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(CheckStopped) as raised:
        await checked(WriteFrames((), RESULT + (MAX_FRAME_BYTES + 1).to_bytes(8, "little")), MemoryObjects())
    assert "at most" in str(raised.value.__cause__)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_process_that_ended_early_is_a_check_that_was_stopped(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    async def feed() -> None:
        child = await ChildProcess.start(("true",), {})
        checking = CheckingProcess(child, CheckJob("", None, CheckedFile), MemoryObjects(), ())
        await asyncio.to_thread(child.process.wait)
        for _ in range(20):
            await checking.add(b"x" * 100_000)
        await checking.finish()
        with pytest.raises(CheckStopped):
            await checking.result()
        await checking.end(is_done=False)

    run(feed())
