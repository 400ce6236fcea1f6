"""Ports of suites: the installed ones, and the store and cache of users' suites."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.scheduler.audit.audit_record import Author
from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteReading
from services.scheduler.suites.suite import AddedSuite, StoredSuite, SuiteDefinition, SuiteListing, SuiteOwner

# Reads a user's document; the second argument are the names of other suites.
ReadDocument = Callable[[SuiteDocument, Collection[str]], SuiteReading]


@dataclass(frozen=True, slots=True)
class BrokenSuite:
    """A suite that cannot be read: all but `problem` as in `SuiteDefinition`."""

    name: str
    problem: str
    version: int = 0
    digest: str = ""
    user: str = ""
    project_id: int = 0


class SuiteCatalogue(Protocol):
    """Installed suites, as their files are now, and those of users."""

    async def suite(self, name: str) -> SuiteDefinition:
        """The suite by name (the latest version) or by `name@version`. Raises `SuiteError`."""
        ...

    async def suites(self) -> Sequence[SuiteListing | BrokenSuite]:
        """Sorted by name; of users' suites the latest version."""
        ...


class InstalledSuites(Protocol):
    """Installed suites, as their files are now."""

    def names(self) -> frozenset[str]:
        """Names of all suites, also broken ones."""
        ...

    def usable_names(self) -> Sequence[str]: ...

    def suite(self, name: str) -> SuiteDefinition:
        """Raises `SuiteError`."""
        ...

    def suites(self) -> Sequence[SuiteDefinition | BrokenSuite]: ...


class SuiteCache(Protocol):
    """Users' suites in memory, with their data files on disk."""

    def get(self, digest: str) -> SuiteDefinition | None:
        """None if the suite has to be put (again)."""
        ...

    def put(self, digest: str, document: SuiteDocument) -> SuiteDefinition:
        """Raises `InvalidSuiteFile`, or `RowsUnavailable` if its files cannot be stored."""
        ...


class UserSuiteStore(Protocol):
    """Users' suites by name and version."""

    async def add(self, suite: str, document: SuiteDocument, owner: SuiteOwner, now: datetime) -> AddedSuite:
        """New content becomes the next version; known content keeps its version.

        Raises `StorageQuotaExceeded`.
        """
        ...

    async def find(self, suite: str, version: int | None) -> StoredSuite | None:
        """`version` None means the latest."""
        ...

    async def latest(self) -> Sequence[StoredSuite]: ...

    async def document(self, stored: StoredSuite) -> SuiteDocument | None: ...

    async def owner(self, suite: str, version: int) -> SuiteOwner | None:
        """The user who added a version; None if there is none."""
        ...

    async def delete(self, suite: str, version: int, author: Author) -> bool:
        """Stores the author too. Returns False if there is none. Raises `SuiteInUse` if a run used it."""
        ...
