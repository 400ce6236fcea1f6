"""The environment of an imported run: where it is from, and what the log says of itself."""

import re
from collections.abc import Mapping

from services.common.secret_names import secret_word
from services.scheduler.imports.errors import LogRefused
from services.scheduler.imports.logged_run import CheckedLog, ImportHeader, LoggedRun

# The name of the file or folder.
FILE = "import.file"
# Many times what logs say of themselves. Lists of runs read it with each run.
MAX_BYTES = 256 * 1024
LEFT_OUT = "left out: it may hold a key or a password"
# The name of an argument, as in `model=m,api_key=k` and in JSON.
_ARGUMENT = re.compile(r"(?<![\w.-])[\w.-]++(?=[\"']?\s*[:=])")
_USER_OF_ADDRESS = re.compile(r"://[^/@\s]*+@")


def environment_of(header: ImportHeader, checked: CheckedLog) -> dict[str, str]:
    """Everybody who may read the run sees it, so arguments that name a secret are left out.

    Raises `LogRefused` for more than `MAX_BYTES`.
    """
    assert checked.run is not None
    log = checked.run
    environment = {
        FILE: header.name,
        "import.digest": checked.digest,
        "import.tool": log.tool_in_words,
        **({"import.notes": " ".join(log.notes)} if log.notes else {}),
        **_told(log),
    }
    if sum(len(name.encode()) + len(value.encode()) for name, value in environment.items()) > MAX_BYTES:
        problem = f"What it says beside its samples takes more than {MAX_BYTES:,} bytes. Import a part."
        raise LogRefused(name=header.name, problem=problem)
    return environment


def _told(log: LoggedRun) -> Mapping[str, str]:
    told = {f"log.{name}": _without_secret(value) for name, value in log.environment.items()}
    for task in log.tasks:
        told[f"task.{task.task}.version"] = task.version
        told |= {f"task.{task.task}.log.{name}": repr(value) for name, value in task.figures.items()}
    return told


def _without_secret(text: str) -> str:
    is_named = any(secret_word(name) for name in _ARGUMENT.findall(text))
    return LEFT_OUT if is_named or _USER_OF_ADDRESS.search(text) else text
