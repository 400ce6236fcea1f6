"""The process that checks an archive of tasks. `uploads/processes/checking` starts it."""

from collections.abc import Iterable

from services.scheduler.rollouts.yaml_suite import read_tasks
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.processes.serve_check import serve_check
from services.scheduler.uploads.task_sets.check_task_archive import CheckTaskArchive, TaskArchiveCheck
from services.scheduler.uploads.task_sets.proto import tasks_to_bytes
from services.scheduler.uploads.task_sets.task_set import CheckedTasks

PROGRAM = "services.scheduler.rollouts.processes.archive_checks"


def _check(check: TaskArchiveCheck, chunks: Iterable[bytes], objects: Objects) -> CheckedTasks:
    return CheckTaskArchive(read=read_tasks, write=tasks_to_bytes, objects=objects).check(check, chunks)


if __name__ == "__main__":
    serve_check({TaskArchiveCheck: _check})
