"""What suites need of the world: the files of the installation, and a store and a shelf of those of users."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteReading
from services.scheduler.suites.stored_suite import AddedSuite, StoredSuite
from services.scheduler.suites.suite import SuiteDefinition, SuiteSummary


@dataclass(frozen=True, slots=True)
class BrokenSuite:
    """`version` and `digest` as of a `SuiteDefinition`."""

    name: str
    problem: str
    version: int = 0
    digest: str = ""


class SuiteCatalogue(Protocol):
    """Suites of the installation, as their files are now, and those that users brought."""

    async def suite(self, name: str) -> SuiteDefinition:
        """By name, of a user's the latest version, or by `name@version`. Raises a `SuiteError`."""
        ...

    async def suites(self) -> Sequence[SuiteSummary | BrokenSuite]:
        """By name; of users' the latest versions."""
        ...


class InstalledSuites(Protocol):
    """Suites of the installation, as their files are now."""

    def names(self) -> frozenset[str]:
        """Also of those that are broken."""
        ...

    def usable_names(self) -> Sequence[str]: ...

    def suite(self, name: str) -> SuiteDefinition:
        """Raises a `SuiteError`."""
        ...

    def suites(self) -> Sequence[SuiteDefinition | BrokenSuite]: ...


class SuiteReader(Protocol):
    def read(self, document: SuiteDocument, taken_names: Collection[str]) -> SuiteReading: ...


class SuiteCache(Protocol):
    """Users' suites that were read, with their files where they can be opened."""

    def taken(self, digest: str) -> SuiteDefinition | None:
        """None where it has to be put here (again)."""
        ...

    def put(self, digest: str, document: SuiteDocument) -> SuiteDefinition:
        """Raises `InvalidSuiteFile`, or `DatasetUnavailable` where its files cannot be put here."""
        ...


class UserSuiteStore(Protocol):
    """What users brought, by name and version."""

    async def add(self, suite: str, document: SuiteDocument, user: str, now: datetime) -> AddedSuite:
        """New content is the next version; known content keeps the one that it has."""
        ...

    async def find(self, suite: str, version: int | None) -> StoredSuite | None:
        """`version` None: the latest."""
        ...

    async def latest(self) -> Sequence[StoredSuite]: ...

    async def document(self, stored: StoredSuite) -> SuiteDocument | None: ...

    async def delete(self, suite: str, version: int) -> bool:
        """False where there is none. Raises `SuiteInUse` where a run used it."""
        ...
