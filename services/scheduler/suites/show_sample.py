"""Renders one row of a task exactly as a run would send it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from proctor.values.sample import LAST_PREVIEWED_ROW, MAX_FEWSHOT
from services.common.errors import InvalidParameter
from services.common.threads.cancellable_threads import CancellableThreads
from services.scheduler.suites.errors import RowNotFound, ShowingTooSlow
from services.scheduler.suites.format.suite_document import SuiteDocument
from services.scheduler.suites.ports import SuiteCache, SuiteCatalogue
from services.scheduler.suites.rendering.render_task import open_task
from services.scheduler.suites.rendering.sample import RenderedSample
from services.scheduler.suites.rows.ports import RowSource
from services.scheduler.suites.suite import TaskDefinition

# As for adding a suite: threads that hostile templates may keep busy.
AT_A_TIME = 2
TIMEOUT_SECONDS = 20.0
# Few-shot draws depend on earlier rows, so all rows before are rendered too.


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """`doc_id` counts from 0; `num_fewshot` None means the task's default."""

    suite: str
    task: str
    doc_id: int
    num_fewshot: int | None = None


@dataclass(frozen=True, slots=True)
class SamplePreview:
    task: TaskDefinition
    sample: RenderedSample
    row_source: str
    row_source_revision: str
    is_stand_in: bool


@dataclass(frozen=True, slots=True)
class ShowSample:
    """`cache_in` unpacks the files of a document into a folder."""

    suites: SuiteCatalogue
    rows: RowSource
    cache_in: Callable[[Path], SuiteCache]
    threads: CancellableThreads = field(
        default_factory=lambda: CancellableThreads(AT_A_TIME, TIMEOUT_SECONDS)
    )

    async def show(self, wanted: SampleRequest, user: str) -> SamplePreview:
        _check(wanted)
        task = (await self.suites.suite(wanted.suite)).task(wanted.task)
        return await self._in_thread(user, wanted, partial(self._rendered, task, wanted))

    async def show_written(self, document: SuiteDocument, wanted: SampleRequest, user: str) -> SamplePreview:
        """Of a suite that is not registered. Raises `InvalidSuiteFile` for its first fault."""
        _check(wanted)
        return await self._in_thread(user, wanted, partial(self._rendered_of, document, wanted))

    async def _in_thread(
        self, user: str, wanted: SampleRequest, render: Callable[[], SamplePreview]
    ) -> SamplePreview:
        try:
            return await self.threads.run_for(user, render)
        except TimeoutError as error:
            seconds = self.threads.limit_seconds or 0.0
            raise ShowingTooSlow(task=wanted.task, doc_id=wanted.doc_id, seconds=f"{seconds:g}") from error

    def _rendered_of(self, document: SuiteDocument, wanted: SampleRequest) -> SamplePreview:
        with TemporaryDirectory(prefix="proctor-suite-") as folder:
            suite = self.cache_in(Path(folder)).put(document.digest, document)
            return self._rendered(suite.task(wanted.task or suite.tasks[0].name), wanted)

    def _rendered(self, task: TaskDefinition, wanted: SampleRequest) -> SamplePreview:
        rendered = open_task(task, self.rows, wanted.num_fewshot, wanted.doc_id + 1)
        [sample] = deque(rendered.samples, maxlen=1)
        if sample.position < wanted.doc_id:
            raise RowNotFound(task=task.name, doc_id=wanted.doc_id, rows=sample.position + 1)
        location = rendered.provenance.location
        return SamplePreview(task, sample, location, rendered.revision, rendered.is_stand_in)


def _check(wanted: SampleRequest) -> None:
    ranges = {
        "doc_id": (wanted.doc_id, LAST_PREVIEWED_ROW),
        "num_fewshot": (wanted.num_fewshot or 0, MAX_FEWSHOT),
    }
    for name, (value, highest) in ranges.items():
        if not 0 <= value <= highest:
            sentence = f"{name} is {value}, but must be at least 0 and at most {highest}."
            raise InvalidParameter(field=name, sentence=sentence)
