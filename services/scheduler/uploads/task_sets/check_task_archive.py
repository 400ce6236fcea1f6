"""Reads an uploaded archive of tasks, in a process, and stores its files by digest, then the tasks."""

import hashlib
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, cast

from proctor.values.rollout import Bundle, RolloutTask
from services.common.errors import DomainError
from services.scheduler.uploads.ports import Objects
from services.scheduler.uploads.quotas.storage_use import StorageQuota, StorageUse
from services.scheduler.uploads.task_sets.ports import ReadTasks, WriteTasks
from services.scheduler.uploads.task_sets.task_set import (
    CheckedTasks,
    TaskSet,
    TasksHeader,
    bundle_key,
    tasks_key,
)

_SPOOLED_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskArchiveCheck:
    """The check of one archive, in plain values. `max_bytes` bounds the archive."""

    header: TasksHeader
    prefix: str
    quota: StorageQuota
    max_bytes: int


@dataclass(frozen=True, slots=True)
class CheckTaskArchive:
    """`read` bounds what is in an archive. Runs in a process."""

    read: ReadTasks
    write: WriteTasks
    objects: Objects

    def check(self, check: TaskArchiveCheck, chunks: Iterable[bytes]) -> CheckedTasks:
        """Raises `StorageQuotaExceeded`. What is wrong with the tasks is a result, with its sentence."""
        header = check.header
        with tempfile.SpooledTemporaryFile(_SPOOLED_BYTES) as spooled:
            size = 0
            for chunk in chunks:
                size += len(chunk)
                if size > check.max_bytes:
                    problem = (
                        f"{header.name} has more than {check.max_bytes:,} bytes compressed. "
                        "Order fewer tasks."
                    )
                    return CheckedTasks(problem=problem, facts={"limit": check.max_bytes})
                spooled.write(chunk)
            spooled.seek(0)
            try:
                tasks = self.read(cast("BinaryIO", spooled), header.name, header.overrides_json)
            except DomainError as error:
                return CheckedTasks(problem=error.message, facts=error.facts)
        return CheckedTasks(_Writing(self, check).store(tasks))


class _Writing:
    """The objects of one set."""

    def __init__(self, checking: CheckTaskArchive, check: TaskArchiveCheck) -> None:
        self._checking = checking
        self._prefix = check.prefix
        self._quota = check.quota
        self._stored: dict[str, int] = {}
        self._size = 0

    def store(self, tasks: Iterable[RolloutTask]) -> TaskSet:
        stored = [self._task(task) for task in tasks]
        content = self._checking.write(stored)
        self._put(tasks_key(self._prefix), content)
        return TaskSet(
            digest=hashlib.sha256(content).hexdigest(),
            prefix=self._prefix,
            size_bytes=self._size,
            task_ids=tuple(task.task_id for task in stored),
            bundles=tuple(self._stored),
        )

    def _task(self, task: RolloutTask) -> RolloutTask:
        bundles = []
        for kind, content in task.files().items():
            digest = hashlib.sha256(content).hexdigest()
            if digest not in self._stored:
                self._put(bundle_key(self._prefix, digest), content)
                self._stored[digest] = len(content)
            bundles.append(Bundle(kind, digest, len(content)))
        return task.with_files({}, tuple(bundles))

    def _put(self, key: str, content: bytes) -> None:
        self._size += len(content)
        self._quota.check(StorageUse(bytes=self._size, files=1))
        self._checking.objects.put(key, [content])
