"""Checks and registers the suites of users."""

from collections.abc import Callable
from dataclasses import dataclass, field

from services.common.checked_fields import refuse
from services.common.clock import Clock
from services.common.requests.request_fields import hidden_problem, project_problem, user_problem
from services.common.threads.cancellable_threads import CancellableThreads
from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteFault, SuiteReading
from services.scheduler.suites.ports import InstalledSuites, ReadDocument, UserSuiteStore
from services.scheduler.suites.suite import SuiteDefinition, SuiteOwner

# Threads for files of users, which may be made to take long; planning has threads of its own.
AT_A_TIME = 2
# Below the time limit of the gateway's call, so that the caller gets the reason.
TIMEOUT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class CheckSuite:
    """Reads documents in threads, a few at a time: a large one takes seconds."""

    read: ReadDocument
    installed: InstalledSuites
    threads: CancellableThreads = field(
        default_factory=lambda: CancellableThreads(AT_A_TIME, TIMEOUT_SECONDS)
    )

    async def check(self, document: SuiteDocument, user: str) -> SuiteReading:
        try:
            return await self.threads.run_for(user, self.read, document, self.installed.names())
        except TimeoutError:
            limit = f"{self.threads.limit_seconds:g} s"
            problem = f"it takes more than {limit} to read; make its templates smaller"
            return SuiteReading(None, (SuiteFault(problem),))


@dataclass(frozen=True, slots=True)
class RegisteredSuite:
    """`is_known`: the same content was registered before."""

    suite: SuiteDefinition
    is_known: bool


@dataclass(frozen=True, slots=True)
class AddSuite:
    """Registers a user's suite: new content becomes a new version."""

    check_suite: CheckSuite
    stored: UserSuiteStore
    clock: Clock
    check_room: Callable[[], None]

    async def add(self, document: SuiteDocument, owner: SuiteOwner) -> RegisteredSuite:
        """Raises `SuiteError`, and `DiskFull` where there is no room."""
        self.check_room()
        refuse(user_problem(owner.user) or project_problem(owner.project_id))
        refuse(hidden_problem("document.file_name", document.file_name))
        reading = await self.check_suite.check(document, owner.user)
        if reading.suite is None:
            raise reading.error(document.name)
        added = await self.stored.add(reading.suite.name, document, owner, self.clock.now())
        return RegisteredSuite(reading.suite.as_stored(added.stored), added.is_known)
