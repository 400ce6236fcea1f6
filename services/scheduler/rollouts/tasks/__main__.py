"""Reads a set of tasks and writes each as a message to stdout: `proctor rollouts check` asks for it.

Each message has its length before it, four bytes. A refusal is one sentence on stderr and exit code 2.
"""

import sys
from pathlib import Path

from proctor.exit_codes import ExitCode
from proctor.wire.values import ROLLOUT_TASK
from services.scheduler.rollouts.tasks.errors import TaskError
from services.scheduler.rollouts.tasks.file_task_sets import read_path


def main() -> int:
    try:
        tasks = read_path(Path(sys.argv[1]).resolve())
    except TaskError as error:
        sys.stderr.write(f"{error}\n")
        return ExitCode.REFUSED
    for task in tasks:
        message = ROLLOUT_TASK.to_proto(task).SerializeToString()
        sys.stdout.buffer.write(len(message).to_bytes(4, "big") + message)
    return 0


if __name__ == "__main__":
    sys.exit(main())
