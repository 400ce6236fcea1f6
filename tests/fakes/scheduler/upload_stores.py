"""The stores of uploads in Postgres, with the limits of the settings; and storage that no user uses."""

from services.common.postgres import PostgresSession
from services.scheduler.batches.postgres import refuse_used_file
from services.scheduler.limits.postgres import PostgresLimits
from services.scheduler.rollouts.artifacts.postgres import STORAGE_QUERIES
from services.scheduler.runs.lifecycle.postgres import refuse_used_by_run
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.quotas.storage_use import NO_QUOTA, StorageQuota, StorageUse, UserStorage
from tests.fakes.scheduler_rules import queue_limits


class EmptyStorage:
    """No user stores anything. `limit` is that of each."""

    def __init__(self, limit: StorageUse = NO_QUOTA.limit) -> None:
        self._limit = limit

    async def of(self, user: str) -> UserStorage:
        return UserStorage(user, {}, self._limit)

    async def quota(self, user: str, project_id: int) -> StorageQuota:  # noqa: ARG002  # no project is limited
        return (await self.of(user)).quota


def storage_in(session: PostgresSession) -> PostgresStorage:
    return PostgresStorage(session, PostgresLimits(session, queue_limits()), STORAGE_QUERIES)


def datasets_in(session: PostgresSession) -> PostgresDatasets:
    return PostgresDatasets(session, refuse_used_by_run, storage_in(session))


def files_in(session: PostgresSession) -> PostgresFiles:
    return PostgresFiles(session, refuse_used_file, storage_in(session))
