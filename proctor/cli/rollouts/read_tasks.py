"""Reads task folders by the scheduler's program, in a process, and shows those that cannot be read."""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from proctor.cli.render.table import numbers, table, texts
from proctor.cli.render.terminal import Terminal, say
from proctor.client.errors import Refused
from proctor.exit_codes import ExitCode

_READ = (sys.executable, "-m", "services.scheduler.rollouts.tasks")
# A reason is a sentence without its names, paths and numbers.
_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S*|\d[\d,.]*")


@dataclass(frozen=True, slots=True)
class TaskFault:
    """A folder that cannot be read: the place of the fault in it, and the sentence."""

    folder: str
    location: str
    problem: str

    @property
    def reason(self) -> str:
        without_task = self.problem.replace(f"The task {self.folder} ", "")
        return _VARIABLE.sub("…", without_task).strip()


@dataclass(frozen=True, slots=True)
class ReadTasks:
    """`messages` are the tasks, each with its length before it. `others` are folders without a task."""

    messages: bytes
    faults: Sequence[TaskFault]
    others: Sequence[str]


class TaskReaderFailed(Exception):
    """The program ended without a word of its own; the message is its last line."""


def read_tasks(folder: Path) -> ReadTasks:
    """Raises Refused where there is no task, and TaskReaderFailed."""
    ended = subprocess.run((*_READ, str(folder)), capture_output=True, check=False)
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
    if ended.returncode == ExitCode.REFUSED:
        raise Refused(lines[-1])
    if ended.returncode:
        raise TaskReaderFailed(lines[-1])
    said = json.loads(lines[-1])
    return ReadTasks(ended.stdout, [TaskFault(**fault) for fault in said["faults"]], said["others"])


def show_faults(terminal: Terminal, read: ReadTasks) -> None:
    """All faults, and how often each reason is there. Nothing with --json, whose document holds them."""
    if terminal.is_json:
        return
    if read.others:
        names = ", ".join(read.others)
        say(terminal.out, f"No tb_meta.json, task.toml or task.yaml in: {names}", style="dim")
    if not read.faults:
        return
    rows = [(fault.folder, fault.problem) for fault in read.faults]
    terminal.out.print(table(terminal.out, texts("cannot be read", "because"), rows))
    counted = Counter(fault.reason for fault in read.faults).most_common()
    if len(read.faults) > 1:
        columns = (*numbers("folders"), *texts("reason"))
        terminal.out.print(table(terminal.out, columns, ((str(n), reason) for reason, n in counted)))
