"""A process of checks that a hostile file has taken over."""

import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from services.common.processes.frames import write_frame
from services.scheduler.uploads.checking.check_file import CheckedFile, DatasetCheck
from services.scheduler.uploads.ports import CheckJob, Objects
from services.scheduler.uploads.processes.serve_check import serve_check

PROGRAM = "tests.fakes.storage.hostile_checks"


@dataclass(frozen=True, slots=True)
class WriteFrames:
    """Writes these frames as its output, then `end`."""

    frames: tuple[tuple[bytes, bytes], ...]
    end: bytes = b""

    @property
    def job(self) -> CheckJob[CheckedFile]:
        return CheckJob(PROGRAM, self, CheckedFile)


def _write(check: WriteFrames, chunks: Iterable[bytes], _: Objects) -> None:
    deque(chunks, maxlen=0)
    for kind, content in check.frames:
        write_frame(sys.stdout.buffer, kind, content)
    sys.stdout.buffer.write(check.end)
    sys.stdout.buffer.flush()
    sys.exit(0)


def _take_all_memory(_: DatasetCheck, chunks: Iterable[bytes], __: Objects) -> int:
    return len([bytes(2**30) for _ in chunks for _ in range(100)])


if __name__ == "__main__":
    serve_check({WriteFrames: _write, DatasetCheck: _take_all_memory})
