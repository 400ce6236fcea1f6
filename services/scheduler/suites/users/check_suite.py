"""A document of a user's is read, to tell what is wrong with it."""

from dataclasses import dataclass, field

from services.scheduler.suites.format.suite_document import SuiteDocument, SuiteProblem
from services.scheduler.suites.format.suite_reading import SuiteReading
from services.scheduler.suites.ports import InstalledSuites, SuiteReader
from services.scheduler.suites.suite_threads import SuiteThreads

AT_A_TIME = 2
LIMIT_SECONDS = 20.0


@dataclass(frozen=True)
class CheckSuite:
    """A large document takes seconds to read: in a thread, and not many at a time."""

    reader: SuiteReader
    installed: InstalledSuites
    threads: SuiteThreads = field(default_factory=lambda: SuiteThreads(AT_A_TIME, LIMIT_SECONDS))

    async def check(self, document: SuiteDocument) -> SuiteReading:
        try:
            return await self.threads.run(self.reader.read, document, self.installed.names())
        except TimeoutError:
            problem = (
                f"it takes more than {self.threads.limit_seconds:g} s to read; make its templates smaller"
            )
            return SuiteReading(None, (SuiteProblem(problem),))
