"""Deletes versions of users' suites."""

from dataclasses import dataclass

from proctor.values.names.user import Caller
from services.common.checked_fields import checked_text
from services.common.clock import Clock
from services.common.requests.request_fields import check_owner
from services.scheduler.audit.audit_record import Author
from services.scheduler.suites.errors import SuiteInstalled, SuiteVersionNotFound, listed
from services.scheduler.suites.ports import InstalledSuites, UserSuiteStore


@dataclass(frozen=True, slots=True)
class DeleteSuite:
    """Deletes a version of a user's suite, unless a run used it."""

    stored: UserSuiteStore
    installed: InstalledSuites
    clock: Clock

    async def delete(self, suite: str, version: int, caller: Caller) -> None:
        """Raises `BelongsToAnother`, `SuiteInUse`, `SuiteVersionNotFound`, `SuiteInstalled`."""
        checked_text("suite", suite)
        owner = await self.stored.owner(suite, version)
        # None is a version that the caller does not see, too.
        if owner is not None:
            check_owner(caller, owner.user, f"Version {version} of the suite {suite}", owner.project_id)
            if await self.stored.delete(suite, version, Author(caller.name, self.clock.now())):
                return
        if suite in self.installed.names():
            raise SuiteInstalled(suite=suite)
        others = listed([stored.full_name for stored in await self.stored.latest()])
        raise SuiteVersionNotFound(suite=suite, version=version, others=others)
