"""A user's suite is registered: new content becomes a new version."""

from dataclasses import dataclass, replace

from services.common.clock import Clock
from services.scheduler import errors
from services.scheduler.runs.run_order import nul_problem
from services.scheduler.runs.user_name import user_problem
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.ports import UserSuiteStore
from services.scheduler.suites.task_definition import SuiteDefinition
from services.scheduler.suites.users.check_suite import CheckSuite


@dataclass(frozen=True, slots=True)
class RegisteredSuite:
    """`is_known`: the same content was registered before."""

    suite: SuiteDefinition
    is_known: bool


@dataclass(frozen=True)
class AddSuite:
    checking: CheckSuite
    stored: UserSuiteStore
    clock: Clock

    async def add(self, document: SuiteDocument, user: str) -> RegisteredSuite:
        problem = user_problem(user) or nul_problem("document.file_name", document.file_name)
        if problem:
            raise errors.InvalidParameter(field=problem.field, sentence=problem.sentence)
        reading = await self.checking.check(document)
        if reading.suite is None:
            raise errors.refusal_of(reading.error(document.name))
        added = await self.stored.add(reading.suite.name, document, user, self.clock.now())
        suite = replace(reading.suite, version=added.stored.version, digest=added.stored.digest)
        return RegisteredSuite(suite, added.is_known)
