"""The rows of the data set that a run ordered, as its one task."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from services.scheduler.datasets.dataset import NamedContent
from services.scheduler.datasets.dataset_errors import RowTooLarge
from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.datasets.ports import ContentSource
from services.scheduler.datasets.row_sample import TASK, VERSION, sample_of_line
from services.scheduler.runs.run import Run
from services.scheduler.shards.planned_task import PlannedTask
from services.scheduler.shards.tasks_to_plan import OpenedTask, TasksToPlan, TaskToPlan
from services.scheduler.suites.cancellable_threads import check_cancelled
from services.scheduler.suites.rendering.render_samples import MAX_SAMPLE_BYTES
from services.scheduler.suites.rendering.sample import Sample
from services.scheduler.suites.suite import MetricUse, OutputType, TaskGroup, TaskScoring

# What goes on a text mostly begins with a space, which no target has.
_FILTERS = '[{"name": "none", "filter": [{"function": "remove_whitespace"}]}]'


@dataclass(frozen=True)
class FindDatasetTasks:
    contents: ContentSource
    loading: LoadRows

    async def tasks_of(self, run: Run) -> TasksToPlan:
        """Raises `DatasetNotFound`. Reading samples may raise `RowTooLarge` or `ObjectStoreUnavailable`."""
        named = await self.contents.content(run.order.dataset_id)
        scoring = row_scoring(run.order.metrics)
        task = TaskToPlan(TASK, scoring, partial(self._open, named, run.order.limit), is_of_dataset=True)
        return TasksToPlan([task], [TaskGroup(run.order.board, (TASK,))])

    def _open(self, named: NamedContent, limit: int | None) -> OpenedTask:
        planned = PlannedTask(
            task=TASK,
            version=VERSION,
            sample_set_id="",
            first_sample=0,
            sample_count=0,
            output_type=OutputType.GENERATE_UNTIL,
            num_fewshot=0,
            is_stand_in=False,
            dataset=named.name,
            dataset_revision=named.content.digest,
        )
        return OpenedTask(planned, self._samples(named, limit), {})

    def _samples(self, named: NamedContent, limit: int | None) -> Iterator[Sample]:
        for row, line in islice(self.loading.lines_from(named.content, 0), limit):
            check_cancelled()
            sample = sample_of_line(row, line)
            if sample.stored_bytes > MAX_SAMPLE_BYTES:
                raise _too_large(sample, named.name)
            yield sample


def row_scoring(metrics: tuple[MetricUse, ...]) -> TaskScoring:
    return TaskScoring(OutputType.GENERATE_UNTIL, metrics, _FILTERS if metrics else "")


def _too_large(sample: Sample, name: str) -> RowTooLarge:
    return RowTooLarge(
        row=sample.position + 1,
        row_id=sample.row_id,
        name=name,
        bytes=sample.stored_bytes,
        limit=MAX_SAMPLE_BYTES,
    )
