"""The log file of each child: where it is, how it ends, and how it is kept small."""

import asyncio
import contextlib
import shutil
import time
from pathlib import Path

ROTATE_ABOVE_BYTES = 20 * 1024 * 1024
LOOK_EVERY_SECONDS = 30.0
TAIL_LINES = 15
TAIL_BYTES = 8192


class ChildLogs:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, child_name: str) -> Path:
        return self.folder / f"{child_name}.log"

    def note(self, sentence: str) -> None:
        """What the supervisor reports is kept too; a log that cannot be written must not stop it."""
        with contextlib.suppress(OSError), self.path("stack").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {sentence}\n")

    async def keep_small(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            for path in self.folder.glob("*.log"):
                with contextlib.suppress(OSError):
                    rotate(path, ROTATE_ABOVE_BYTES)


def rotate(path: Path, above_bytes: int) -> None:
    """Copies and truncates in place: the children keep their descriptors, and append at the new end."""
    if path.stat().st_size <= above_bytes:
        return
    shutil.copyfile(path, path.with_suffix(".log.1"))
    with path.open("r+b") as file:
        file.truncate(0)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def tail(path: Path, since_byte: int = 0) -> str:
    """The last lines written after `since_byte`: of this start, not of an older one."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(min(since_byte, end), end - TAIL_BYTES))
        text = file.read().decode("utf-8", errors="replace")
    return "\n".join(text.splitlines()[-TAIL_LINES:])
