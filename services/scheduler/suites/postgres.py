"""Suites of users in Postgres."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import asyncpg

from proctor.values.names.project import is_declared
from proctor.values.names.suite_name import versioned_name
from services.common.errors import InvalidParameter
from services.common.postgres import PostgresSession, PostgresTransaction
from services.scheduler.audit.audit_record import Action, Author, Change, ObjectKind
from services.scheduler.audit.postgres import record_change
from services.scheduler.suites.errors import SuiteInUse
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.suite import AddedSuite, StoredSuite, SuiteOwner

# Raises why so many bytes of a user and project do not fit, in the transaction that added them.
CheckStorage = Callable[[PostgresTransaction, str, int, int], Awaitable[None]]


class PostgresUserSuites:
    def __init__(self, session: PostgresSession, check_storage: CheckStorage) -> None:
        self._session = session
        self._check_storage = check_storage

    async def add(self, suite: str, document: SuiteDocument, owner: SuiteOwner, now: datetime) -> AddedSuite:
        digest, user, project_id = document.digest, owner.user, owner.project_id

        async def add(transaction: PostgresTransaction) -> AddedSuite:
            await transaction.execute("lock_suite", suite=suite)
            _check_project(suite, project_id, await transaction.fetchval("find_suite_project", suite=suite))
            known = await transaction.fetchrow("find_suite_content", suite=suite, digest=digest)
            if known is not None:
                return AddedSuite(
                    StoredSuite(suite, digest=digest, project_id=project_id, **known), is_known=True
                )
            version = await transaction.fetchval(
                "add_suite_version",
                suite=suite,
                digest=digest,
                document=document.text,
                file_name=document.file_name,
                username=user,
                created_at=now,
                project_id=project_id,
            )
            paths, contents = list(document.files), list(document.files.values())
            await transaction.execute(
                "add_suite_files", suite=suite, version=version, paths=paths, contents=contents
            )
            await self._check_storage(transaction, user, project_id, document.size_bytes)
            name = versioned_name(suite, version)
            change = Change(Author(user, now), Action.ADD, ObjectKind.SUITE, name, project_id=project_id)
            await record_change(transaction, change)
            return AddedSuite(StoredSuite(suite, version, digest, user, project_id))

        return await self._session.run(add)

    async def find(self, suite: str, version: int | None) -> StoredSuite | None:
        row = await self._session.fetchrow("find_suite", suite=suite, version=version)
        return StoredSuite(**row) if row else None

    async def latest(self) -> Sequence[StoredSuite]:
        rows = await self._session.fetch("list_latest_suites")
        return [StoredSuite(**row) for row in rows]

    async def document(self, stored: StoredSuite) -> SuiteDocument | None:
        async def read(transaction: PostgresTransaction) -> SuiteDocument | None:
            suite, version = stored.suite, stored.version
            row = await transaction.fetchrow("read_suite_document", suite=suite, version=version)
            files = await transaction.fetch("list_suite_files", suite=suite, version=version)
            contents = {file["path"]: file["content"] for file in files}
            return SuiteDocument(row["document"], row["file_name"], contents) if row else None

        return await self._session.run(read)

    async def owner(self, suite: str, version: int) -> SuiteOwner | None:
        row = await self._session.fetchrow("read_suite_owner", suite=suite, version=version)
        return SuiteOwner(**row) if row else None

    async def delete(self, suite: str, version: int, author: Author) -> bool:
        async def delete(transaction: PostgresTransaction) -> bool:
            project_id = await transaction.fetchval("delete_suite_version", suite=suite, version=version)
            if project_id is None:
                return False
            name = versioned_name(suite, version)
            change = Change(author, Action.DELETE, ObjectKind.SUITE, name, project_id=project_id)
            await record_change(transaction, change)
            return True

        try:
            return await self._session.run(delete)
        except asyncpg.ForeignKeyViolationError as error:
            raise SuiteInUse(suite=suite, version=version) from error


def _check_project(suite: str, project_id: int, found: int | None) -> None:
    """Raises `InvalidParameter` for the name of a suite in another declared project."""
    if found is None or found == project_id or not (is_declared(found) or is_declared(project_id)):
        return
    sentence = f"Another project has a suite {suite}: give this one another name."
    raise InvalidParameter(field="project_id", sentence=sentence)
