"""Reads a set of tasks and writes each as a message to stdout: `proctor rollouts check` asks for it.

Each message has its length before it, four bytes. Folders that cannot be read are on stderr, as one line of
JSON. Where none is a task, stderr is one sentence, and the exit code 2.
"""

import json
import sys
from pathlib import Path

from proctor.exit_codes import ExitCode
from proctor.wire.values import ROLLOUT_TASK
from services.scheduler.rollouts.tasks.errors import TaskError
from services.scheduler.rollouts.tasks.file_task_sets import TaskFault, read_path


def main() -> int:
    try:
        read = read_path(Path(sys.argv[1]).resolve())
    except TaskError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.REFUSED
    for task in read.tasks:
        message = ROLLOUT_TASK.to_proto(task).SerializeToString()
        sys.stdout.buffer.write(len(message).to_bytes(4, "big") + message)
    json.dump({"faults": [_shown(fault) for fault in read.faults], "others": read.others}, sys.stderr)
    return 0


def _shown(fault: TaskFault) -> dict[str, str]:
    facts = fault.error.facts
    location = facts.get("location", facts.get("what", ""))
    return {"folder": fault.folder, "location": str(location), "problem": str(fault.error)}


if __name__ == "__main__":
    sys.exit(main())
