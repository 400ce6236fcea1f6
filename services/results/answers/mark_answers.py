"""Marks answers of a run as golden or as wrong, or takes the marks off, and lists who did so."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.names.user import LOCAL_USER, Caller
from proctor.values.outcome import MAX_MARKED_ANSWERS
from services.common.checked_fields import invalid_field
from services.common.requests.page_tokens import number_token, read_number_token
from services.common.requests.request_fields import check_stores
from services.results.answers.errors import RowNotFound
from services.results.answers.marks import Mark, MarkChange, MarkCounts
from services.results.answers.postgres import PostgresMarks
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan

_LIST = "mark changes"


@dataclass(frozen=True, slots=True)
class NamedAnswer:
    """An answer named by the number of its sample, or by the id of its row where there is one."""

    sample: int
    rollout: int
    row_id: str = ""


@dataclass(frozen=True, slots=True)
class MarkRequest:
    run_id: str
    answers: Sequence[NamedAnswer]
    mark: Mark | None
    user: str = ""


@dataclass(frozen=True, slots=True)
class MarkAnswers:
    records: RunRecordStore
    marks: PostgresMarks

    async def mark(self, request: MarkRequest, caller: Caller) -> MarkCounts:
        """Marks all named answers, or fails and marks none. Returns how many marks the run has now.

        Raises `ProjectNotFound` for who only reads in the project of the run.
        """
        if len(request.answers) > MAX_MARKED_ANSWERS:
            raise invalid_field("answers", f"must be at most {MAX_MARKED_ANSWERS} at a time")
        record = await self.records.get(request.run_id)
        check_stores(caller, record.plan.facts.project_id)
        keys = await self._keys(record.plan, request.answers)
        return await self.marks.mark(request.run_id, keys, request.mark, request.user or LOCAL_USER)

    async def _keys(self, plan: RunPlan, answers: Sequence[NamedAnswer]) -> list[OutcomeKey]:
        """The keys, each once."""
        row_ids = sorted({answer.row_id for answer in answers if answer.row_id})
        samples = await self._samples(plan, row_ids) if row_ids else {}
        keys = [(samples[one.row_id] if one.row_id else one.sample, one.rollout) for one in answers]
        return sorted(set(keys))

    async def _samples(self, plan: RunPlan, row_ids: Sequence[str]) -> dict[str, int]:
        if len(plan.tasks) != 1:
            raise invalid_field("row_id", "names a row only where the run has one task")
        [task] = plan.tasks
        found = await self.marks.positions(task.sample_set_id, row_ids)
        for row_id in row_ids:
            if row_id not in found:
                raise RowNotFound(run_id=plan.run_id, row_id=row_id)
        return {row_id: task.first_sample + position for row_id, position in found.items()}


@dataclass(frozen=True, slots=True)
class MarkChangePage:
    """Latest first. The token is empty on the last page."""

    changes: Sequence[MarkChange]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ListMarkChanges:
    records: RunRecordStore
    marks: PostgresMarks

    async def list_page(self, run_id: str, size: int, token: str) -> MarkChangePage:
        """Raises `RecordNotFound`, and an error of the field for a token of another list."""
        await self.records.get(run_id)
        before = read_number_token(_LIST, token)
        # One more than is shown: then there is a next page.
        changes = await self.marks.changes(run_id, size + 1, before)
        shown = changes[:size]
        has_more = len(changes) > size
        return MarkChangePage(shown, number_token(_LIST, shown[-1].number) if has_more else "")
