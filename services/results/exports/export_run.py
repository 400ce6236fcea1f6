"""Writes a run as a file, piece by piece: memory does not grow with the run, a slow reader holds it back."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from services.results.errors import InvalidField, RecordNotFound
from services.results.exports.export_form import ExportForm, FileWriter
from services.results.exports.exported_run import ExportedRun
from services.results.ports import ExportedOutcomes, RunRecordStore
from services.results.runs.run_record import RunPlan
from services.results.runs.summarize_run import SummarizeRun


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """`pieces` may be read once."""

    name: str
    media_type: str
    pieces: AsyncIterator[bytes]


class ExportRun:
    """`forms` go by the number that the contract gives them."""

    def __init__(
        self,
        records: RunRecordStore,
        outcomes: ExportedOutcomes,
        summarize: SummarizeRun,
        forms: Mapping[int, ExportForm],
    ) -> None:
        self._records = records
        self._outcomes = outcomes
        self._summarize = summarize
        self._forms = forms

    async def __call__(self, run_id: str, form_number: int, task: str = "") -> ExportedFile:
        """What is wrong with the request is told here, before the first piece."""
        form = self._forms.get(form_number)
        if form is None:
            raise InvalidField(field="format", problem="must be given")
        record = await self._records.find(run_id)
        if record is None:
            raise RecordNotFound(run_id=run_id)
        indexes = _task_indexes(record.plan, task, form)
        counts = await self._records.all_counts(record.plan)
        run = ExportedRun(record, await self._summarize(run_id), counts.environment)
        named_task = record.plan.tasks[indexes[0]].task if task or form.is_of_one_task else ""
        name = run.file_stem(named_task) + form.suffix
        return ExportedFile(name, form.media_type, self._pieces(run, form, indexes))

    async def _pieces(self, run: ExportedRun, form: ExportForm, indexes: list[int]) -> AsyncIterator[bytes]:
        writer = form.open(run)
        yield await asyncio.to_thread(writer.begin)
        if form.has_outcomes:
            async for piece in self._outcome_pieces(run.record.plan, form, indexes, writer):
                yield piece
        yield await asyncio.to_thread(writer.end)

    async def _outcome_pieces(
        self, plan: RunPlan, form: ExportForm, indexes: list[int], writer: FileWriter
    ) -> AsyncIterator[bytes]:
        for index in indexes:
            async for chunk in self._outcomes.chunks(plan, index, has_docs=form.has_docs):
                # In a thread: the service goes on recording while a chunk is written.
                yield await asyncio.to_thread(writer.write, chunk)


def _task_indexes(plan: RunPlan, task: str, form: ExportForm) -> list[int]:
    names = ", ".join(planned.task for planned in plan.tasks)
    if task:
        index = plan.task_index_named(task)
        if index is None:
            raise InvalidField(field="task", problem=f"must be one of the run's: {names}")
        return [index]
    if form.is_of_one_task and len(plan.tasks) > 1:
        raise InvalidField(field="task", problem=f"must be given for this format, one of: {names}")
    return list(range(len(plan.tasks)))
