"""The folder in which the code of a task may write: what it writes there is gone where its process is."""

import os
from pathlib import Path


class Scratch:
    """`folder`: one in memory, in which nothing but the task's own code writes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._kept: dict[Path, bytes | None] = {}

    def keep(self) -> None:
        """What is there now, as of imports, is what each copy of the process finds. None: a folder."""
        for path in sorted(Path(self._folder).rglob("*")):
            if path.is_file() and not path.is_symlink():
                self._kept[path] = path.read_bytes()
            elif path.is_dir() and not path.is_symlink():
                self._kept[path] = None

    def restore(self) -> None:
        _empty(self._folder)
        for path, content in self._kept.items():
            if content is None:
                path.mkdir()
            else:
                path.write_bytes(content)


def _empty(folder: str) -> None:
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            # Its code may have closed it.
            os.chmod(entry.path, 0o700)  # noqa: PTH101  # an entry has no Path
            _empty(entry.path)
            os.rmdir(entry.path)  # noqa: PTH106  # as above
        else:
            os.unlink(entry.path)  # noqa: PTH108  # as above
