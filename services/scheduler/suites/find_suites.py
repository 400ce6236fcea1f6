"""Finds suites by name: installed ones and versions of users' suites."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from proctor.values.names.suite_name import split_name
from services.scheduler.suites.errors import SuiteInstalled, UnknownSuite, listed
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.ports import (
    BrokenSuite,
    InstalledSuites,
    ReadDocument,
    SuiteCache,
    UserSuiteStore,
)
from services.scheduler.suites.suite import StoredSuite, SuiteDefinition, SuiteListing, summary_of


@dataclass(frozen=True, slots=True)
class WrittenSuite:
    """A version of a user's suite as its author wrote it."""

    document: SuiteDocument
    version: int


@dataclass(frozen=True, slots=True)
class FindSuites:
    """The store is shared by all replicas; each has its own cache and its own summaries for lists."""

    installed: InstalledSuites
    stored: UserSuiteStore
    cache: SuiteCache
    read: ReadDocument
    _listed: dict[str, SuiteListing | BrokenSuite | None] = field(default_factory=dict)

    async def suite(self, name: str) -> SuiteDefinition:
        base, version = split_name(name)
        if version is None and base in self.installed.names():
            return self.installed.suite(base)
        stored = None if "\0" in name else await self.stored.find(base, version)
        if stored is None:
            users = [suite.suite for suite in await self.stored.latest()]
            supported = listed(sorted({*self.installed.usable_names(), *users}))
            raise UnknownSuite(suite=name, supported=supported)
        return await self._read(stored)

    async def document(self, name: str) -> WrittenSuite:
        """A version of a user's suite as it was added. Raises `SuiteInstalled`, `UnknownSuite`."""
        base, version = split_name(name)
        if base in self.installed.names():
            raise SuiteInstalled(suite=base)
        stored = None if "\0" in name else await self.stored.find(base, version)
        document = await self.stored.document(stored) if stored else None
        if stored is None or document is None:
            raise UnknownSuite(
                suite=name, supported=listed([suite.suite for suite in await self.stored.latest()])
            )
        return WrittenSuite(document, stored.version)

    async def suites(self) -> Sequence[SuiteListing | BrokenSuite]:
        """All but those that ask no model: an order of rollouts adds one to execute the tasks' solutions."""
        taken = self.installed.names()
        users = {
            stored.full_name: self._listed[stored.full_name]
            if stored.full_name in self._listed
            else await self._summary(stored)
            for stored in await self.stored.latest()
            if stored.suite not in taken
        }
        # A version never changes; deleted ones are not kept.
        self._listed.clear()
        self._listed.update(users)
        installed = [
            suite if isinstance(suite, BrokenSuite) else summary_of(suite)
            for suite in self.installed.suites()
        ]
        shown = [suite for suite in users.values() if suite is not None]
        return sorted([*installed, *shown], key=lambda suite: suite.name)

    async def _summary(self, stored: StoredSuite) -> SuiteListing | BrokenSuite | None:
        document = await self.stored.document(stored)
        if document is None:
            return _broken(stored, "It was deleted just now.")
        reading = await asyncio.to_thread(self.read, document, ())
        if reading.suite is None:
            return _broken(stored, str(reading.error(document.name)))
        if all(task.asks_no_model for task in reading.suite.tasks):
            return None
        return summary_of(reading.suite.as_stored(stored))

    async def _read(self, stored: StoredSuite) -> SuiteDefinition:
        suite = self.cache.get(stored.digest)
        if suite is None:
            document = await self.stored.document(stored)
            if document is None:
                supported = listed(sorted(self.installed.usable_names()))
                raise UnknownSuite(suite=stored.full_name, supported=supported)
            suite = await asyncio.to_thread(self.cache.put, stored.digest, document)
        return suite.as_stored(stored)


def _broken(stored: StoredSuite, problem: str) -> BrokenSuite:
    return BrokenSuite(stored.suite, problem, stored.version, stored.digest, stored.user, stored.project_id)
