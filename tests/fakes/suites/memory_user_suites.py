"""Users' suites in memory: kept and refused as Postgres does. `used` are versions that a run used."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.scheduler.audit.audit_record import Author
from services.scheduler.suites.errors import SuiteInUse
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.suite import AddedSuite, StoredSuite, SuiteOwner


@dataclass
class InMemoryUserSuites:
    documents: dict[StoredSuite, SuiteDocument] = field(default_factory=dict)
    owners: dict[StoredSuite, SuiteOwner] = field(default_factory=dict)
    last_versions: dict[str, int] = field(default_factory=dict)
    used: set[tuple[str, int]] = field(default_factory=set)
    on_document: Callable[[str], object] = lambda _: None

    async def add(self, suite: str, document: SuiteDocument, owner: SuiteOwner, now: datetime) -> AddedSuite:  # noqa: ARG002  # as the port has it
        for stored in self.documents:
            if (stored.suite, stored.digest) == (suite, document.digest):
                return AddedSuite(stored, is_known=True)
        self.last_versions[suite] = self.last_versions.get(suite, 0) + 1
        stored = StoredSuite(suite, self.last_versions[suite], document.digest, owner.user)
        self.documents[stored] = document
        self.owners[stored] = owner
        return AddedSuite(stored)

    async def find(self, suite: str, version: int | None) -> StoredSuite | None:
        found = [one for one in self.documents if one.suite == suite and version in (None, one.version)]
        return max(found, key=lambda one: one.version, default=None)

    async def latest(self) -> Sequence[StoredSuite]:
        names = sorted({one.suite for one in self.documents})
        return [max((one for one in self.documents if one.suite == name), key=_version) for name in names]

    async def document(self, stored: StoredSuite) -> SuiteDocument | None:
        self.on_document(stored.full_name)
        return self.documents.get(stored)

    async def owner(self, suite: str, version: int) -> SuiteOwner | None:
        return next(
            (self.owners[one] for one in self.documents if (one.suite, one.version) == (suite, version)), None
        )

    async def delete(self, suite: str, version: int, author: Author) -> bool:  # noqa: ARG002  # as the port has it
        if (suite, version) in self.used:
            raise SuiteInUse(suite=suite, version=version)
        found = [one for one in self.documents if (one.suite, one.version) == (suite, version)]
        for stored in found:
            del self.documents[stored]
        return bool(found)


def _version(stored: StoredSuite) -> int:
    return stored.version
