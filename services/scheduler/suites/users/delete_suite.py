"""A version of a user's suite is deleted, unless a run used it."""

from dataclasses import dataclass

from services.scheduler import errors
from services.scheduler.runs.run_order import nul_problem
from services.scheduler.suites.ports import InstalledSuites, UserSuiteStore
from services.scheduler.suites.suite_errors import listed


@dataclass(frozen=True)
class DeleteSuite:
    stored: UserSuiteStore
    installed: InstalledSuites

    async def delete(self, suite: str, version: int) -> None:
        """Raises `SuiteInUse`, `NoSuchVersion`, `SuiteOfInstallation`."""
        problem = nul_problem("suite", suite)
        if problem:
            raise errors.InvalidParameter(field=problem.field, sentence=problem.sentence)
        if await self.stored.delete(suite, version):
            return
        if suite in self.installed.names():
            raise errors.SuiteOfInstallation(suite=suite)
        others = listed([stored.full_name for stored in await self.stored.latest()])
        raise errors.NoSuchVersion(suite=suite, version=version, others=others)
