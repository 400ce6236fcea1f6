"""Folders of files that a task asks for by their paths, wherever they lie."""

import re
from collections.abc import Iterator
from posixpath import dirname, normpath

from services.scheduler.rollouts.tasks.task_folder import Files

# With a suffix: paths without one are mostly addresses of a server, or programs.
_FILE = re.compile(r"(?<![\w./$}~:*-])(?:/[\w.@+-]+)+\.\w+")


def named_folders(instruction: str, tests: Files) -> Iterator[str]:
    """Those of files that the instruction names, where the tests name the file or its folder too."""
    text = "\n".join(file.content.decode("utf-8", "replace") for file in tests.values())
    for path in dict.fromkeys(map(normpath, _FILE.findall(instruction))):
        folder = dirname(path)
        if folder != "/" and re.search(rf"(?<![\w./-]){re.escape(folder)}(?![\w-])", text):
            yield folder
