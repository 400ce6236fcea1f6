"""Folders that no other account can write to: what is found in them is used without a check."""

import os
import stat
from pathlib import Path

from services.common.errors import InvalidSetting


def make_own_folder(folder: Path, setting: str) -> None:
    """Creates the folder. Raises `InvalidSetting` if another user created it first, or may write to it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    problem = ""
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
        problem = f"{folder} belongs to another user or is a link"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"other users may write to {folder}"
    if problem:
        raise InvalidSetting(setting=setting, problem=problem)
