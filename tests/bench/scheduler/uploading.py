"""Cost of an upload: checked, packed and stored in a folder, each size in a process of its own.

Files are made while they are sent and kept nowhere. The event loop does nothing else meanwhile than to look
how late it wakes: so long would a call of another user wait.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from services.common.clock import SystemClock
from services.common.objects.obstore_objects import ObstoreObjects
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.checking.check_file import SizeLimits
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import Dataset, DatasetHeader, DatasetId
from services.scheduler.uploads.processes.checking import start_check
from services.scheduler.uploads.processes.upload_checks import PROGRAM
from services.scheduler.wiring import THREAD_SWITCH_SECONDS
from tests.fakes.scheduler.upload_stores import EmptyStorage

GIGABYTE = 1_000_000_000
PIECE_BYTES = 256 * 1024
HEARTBEAT_SECONDS = 0.002
BATCH = Path(os.environ.get("PROCTOR_DATA_DIR", "")) / "batch" / "batch_5000.jsonl"
# Stands in each id, to be replaced by the number of the block.
MARK = b"block-00000000"


@dataclass(frozen=True)
class Uploaded:
    """CPU seconds without those that making the file took; how late the loop woke, in seconds."""

    rows: int
    size_bytes: int
    cpu_seconds: float
    mib_before: float
    mib_peak: float
    late_p99: float
    late_most: float


class MadeFile:
    """Blocks of the same lines with fresh ids. Knows the CPU seconds that it took."""

    def __init__(self, block: bytes, size_bytes: int) -> None:
        self.cpu_seconds = 0.0
        self._block = block
        self._size_bytes = size_bytes

    async def pieces(self) -> AsyncIterator[bytes]:
        for number in range(self._size_bytes // len(self._block)):
            started = time.thread_time()
            content = self._block.replace(MARK, b"block-%08d" % number)
            self.cpu_seconds += time.thread_time() - started
            for start in range(0, len(content), PIECE_BYTES):
                yield content[start : start + PIECE_BYTES]


@dataclass
class LateLoop:
    """How much later than asked the loop woke."""

    seconds: list[float] = field(default_factory=list)

    async def watch(self) -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self.seconds.append(time.perf_counter() - started - HEARTBEAT_SECONDS)


class OneDataset:
    """Instead of Postgres, which does one insert however long the file is."""

    async def register_prefix(self, prefix: str) -> None:
        pass

    async def add(self, dataset: Dataset, request_id: str) -> Dataset:  # noqa: ARG002  # as the port has it
        return dataset


def batch_block() -> bytes:
    """The real batch where it is at hand, else lines as long as its."""
    if BATCH.is_file():
        return BATCH.read_bytes().replace(b'"custom_id": "', b'"custom_id": "' + MARK)
    words = " ".join(f"word{number}" for number in range(60))
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": words}]
    body = {"model": "test-model", "messages": messages, "max_tokens": 4, "temperature": 0}
    lines = (
        {
            "custom_id": f"{MARK.decode()}{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": body,
        }
        for number in range(5000)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def short_block() -> bytes:
    """Lines so short that ids are a good part of them."""
    lines = (
        {"id": f"{MARK.decode()}{number}", "prompt": f"{number} and 1 make?"} for number in range(20_000)
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


BLOCKS = {"batch requests": batch_block, "short prompts": short_block}
SIZES = {
    "batch requests": (GIGABYTE // 10, GIGABYTE, 5 * GIGABYTE),
    "short prompts": (GIGABYTE // 10, GIGABYTE),
}


def measure_upload(kind: str, size_bytes: int) -> Uploaded:
    sys.setswitchinterval(THREAD_SWITCH_SECONDS)
    return asyncio.run(_measured(MadeFile(BLOCKS[kind](), size_bytes)))


async def _measured(file: MadeFile) -> Uploaded:
    late = LateLoop()
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        objects = ObstoreObjects(Path(folder).as_uri())
        adding = AddDataset(
            PROGRAM,
            SizeLimits(2**40, 2**40, 2**40),
            OneDataset(),  # type: ignore[arg-type]  # adding needs no more of the port
            objects,
            SystemClock(),
            Uploads(UploadLimits(uploads=1, per_user=1, seconds=3600), start_check, lambda: None),
            EmptyStorage(),
        )
        before, started = _peak_mib(), _cpu_seconds()
        watching = asyncio.ensure_future(late.watch())
        added = await adding.add(DatasetId("ds_1"), DatasetHeader("x.jsonl", "ann"), file.pieces())
        watching.cancel()
        cpu_seconds = _cpu_seconds() - started - file.cpu_seconds
    if added.dataset is None:
        raise SystemExit(f"refused: {added.faults}")
    content = added.dataset.content
    return Uploaded(
        content.facts.row_count,
        content.size_bytes,
        cpu_seconds,
        before,
        _peak_mib(),
        float(np.percentile(late.seconds, 99)),
        max(late.seconds),
    )


def _peak_mib() -> float:
    """Of the larger one of the two: this process, and the one that checks."""
    return max(resource.getrusage(who).ru_maxrss for who in _BOTH) / 1024


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in _BOTH]
    return sum(one.ru_utime + one.ru_stime for one in used)


_BOTH = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _row(kind: str, one: Uploaded) -> tuple[str, ...]:
    return (
        kind,
        f"{one.size_bytes / GIGABYTE:.1f}",
        f"{one.rows / 1e6:.2f}",
        f"{one.size_bytes / 1e6 / one.cpu_seconds:.0f}",
        f"{one.mib_peak:.0f}",
        f"{one.mib_before:.0f}",
        f"{one.late_p99 * 1000:.1f}",
        f"{one.late_most * 1000:.1f}",
    )


async def main() -> None:
    table = Table(title="Uploads of JSON lines: checked, packed, stored in a folder")
    for heading in ("lines", "GB", "million rows", "MB/s of one core", "peak MiB", "of it before"):
        table.add_column(heading, justify="right" if table.columns else "left")
    table.add_column("loop late p99, ms", justify="right")
    table.add_column("most, ms", justify="right")
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as processes:
        for kind, sizes in SIZES.items():
            for size in sizes:
                table.add_row(*_row(kind, processes.submit(measure_upload, kind, size).result()))
    Console(width=110).print(table)
