"""The port by which the storage of users is summed."""

from typing import Protocol

from services.scheduler.uploads.quotas.storage_use import StorageQuota, UserStorage


class StorageSource(Protocol):
    async def of(self, user: str) -> UserStorage:
        """The storage, to show and to refuse early.

        The store that adds something checks in its transaction.
        """
        ...

    async def quota(self, user: str, project_id: int) -> StorageQuota:
        """The quota of what the user adds to a project; of none for 0."""
        ...
