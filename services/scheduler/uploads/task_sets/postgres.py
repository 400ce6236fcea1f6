"""Sets of tasks in Postgres, and who uses them."""

from datetime import datetime

from services.common.clock import Clock
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.quotas.storage_use import StorageUse
from services.scheduler.uploads.task_sets.task_set import TaskSet


class PostgresTaskSets:
    """Sets of tasks, and who uses them: a user who uploaded one, or a suite that was written of one.

    A prefix is unreferenced while no set has its objects.
    """

    def __init__(self, session: PostgresSession, storage: PostgresStorage, clock: Clock) -> None:
        self._session = session
        self._storage = storage
        self._clock = clock

    async def register_prefix(self, prefix: str) -> None:
        """Marks the prefix as unreferenced. Called before the first object is stored under it."""
        await self._session.execute("add_unreferenced_prefix", prefix=prefix)

    async def add(self, tasks: TaskSet, user: str) -> str:
        """The prefix of the set: that of an equal one, where it is stored already.

        Raises `StorageQuotaExceeded`.
        """

        author = Author(user, self._clock.now())
        uploaded = Change(author, Action.UPLOAD, ObjectKind.TASKS, tasks.digest)

        async def add(transaction: PostgresTransaction) -> str:
            prefix: str = await transaction.fetchval(
                "store_task_set", digest=tasks.digest, prefix=tasks.prefix, size_bytes=tasks.size_bytes
            )
            await transaction.execute(
                "add_task_bundles", tasks_digest=tasks.digest, digests=list(tasks.bundles)
            )
            await self._use(transaction, tasks.digest, user, "", tasks.size_bytes)
            await transaction.execute("delete_unreferenced_prefix", prefix=prefix)
            await record_change(transaction, uploaded)
            return prefix

        return await self._session.run(add)

    async def use(self, tasks_digest: str, user: str, suite_digest: str = "") -> str:
        """The prefix of a set, which the suite with this digest uses from now on.

        Without one it is kept for a while. Raises `TasksNotFound`, also for a set that the user has not
        uploaded: its digest alone opens nothing.
        """

        async def use(transaction: PostgresTransaction) -> str:
            row = await transaction.fetchrow("lock_task_set", digest=tasks_digest)
            if row is None or not await self._has(transaction, tasks_digest, user):
                raise TasksNotFound(tasks_digest=tasks_digest)
            await self._use(transaction, tasks_digest, user, suite_digest, row["size_bytes"])
            prefix: str = row["prefix"]
            return prefix

        return await self._session.run(use)

    async def _has(self, transaction: PostgresTransaction, tasks_digest: str, user: str) -> bool:
        found = await transaction.fetchval("find_task_set_use", tasks_digest=tasks_digest, username=user)
        return found is not None

    async def _use(
        self,
        transaction: PostgresTransaction,
        tasks_digest: str,
        user: str,
        suite_digest: str,
        size_bytes: int,
    ) -> None:
        """A set counts once for its user, however many suites use it."""
        is_known = await self._has(transaction, tasks_digest, user)
        await transaction.execute(
            "use_task_set",
            tasks_digest=tasks_digest,
            username=user,
            suite_digest=suite_digest,
            since=self._clock.now(),
        )
        if not is_known:
            # Orders of several projects may use it, so it counts towards none.
            added = StorageUse(bytes=size_bytes, files=1)
            await self._storage.check_added(transaction, user, 0, added)

    async def prefix_of_bundle(self, digest: str) -> str | None:
        """A prefix under which the files with this digest are stored."""
        prefix: str | None = await self._session.fetchval("find_task_bundle", digest=digest)
        return prefix

    async def delete_unused(self, uploaded_before: datetime, suites_before: datetime) -> None:
        """Deletes uploads that no order used, and uses of suites that are not there, older than this.

        Prefixes of sets without a user and a suite are unreferenced then.
        """

        async def delete(transaction: PostgresTransaction) -> None:
            await transaction.execute("delete_task_uploads", before=uploaded_before)
            await transaction.execute("delete_task_uses", before=suites_before)
            unused = await transaction.fetch("lock_unused_task_sets")
            deleted = await transaction.fetch("delete_task_sets", digests=[row["digest"] for row in unused])
            await transaction.executemany(
                "add_unreferenced_prefix", [{"prefix": row["prefix"]} for row in deleted]
            )

        await self._session.run(delete)
