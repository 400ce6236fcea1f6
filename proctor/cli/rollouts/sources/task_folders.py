"""Which folders of this machine are tasks."""

from collections.abc import Sequence
from pathlib import Path

# Each makes a folder the folder of a task.
_TASK_FILES = ("tb_meta.json", "task.toml", "task.yaml")


def is_task(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _TASK_FILES)


def task_folders(folder: Path) -> Sequence[Path]:
    """Those in a folder, by their names."""
    return sorted(path for path in folder.iterdir() if is_task(path)) if folder.is_dir() else []
