"""Samples of a log between the process that reads it and results: in a folder that goes with the import."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from services.common.processes.plain_values import UnexpectedValue, from_bytes
from services.scheduler.imports.logged_run import LoggedSample, part_key
from services.scheduler.uploads.errors import CheckStopped
from services.scheduler.uploads.processes.check_frames import MEMORY_BYTES


class SpooledParts:
    """Takes objects of a check, below its prefix."""

    prefix = "parts"

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-import-")

    def put(self, key: str, chunks: Sequence[bytes]) -> None:
        path = Path(self._folder.name) / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(chunks))

    def of_task(self, task_index: int) -> Iterator[Sequence[LoggedSample]]:
        """The samples of a task in order. Raises `CheckStopped` for what is none."""
        part = 1
        while (path := Path(self._folder.name) / part_key(self.prefix, task_index, part)).exists():
            try:
                yield from_bytes(path.read_bytes(), list[LoggedSample])
            except UnexpectedValue as error:
                # A process that reads a hostile file may have written anything.
                raise CheckStopped(gibibytes=MEMORY_BYTES // 1024**3) from error
            part += 1

    def close(self) -> None:
        self._folder.cleanup()
