"""Marks answers of a run as golden or as wrong, or takes the marks off: all that are named, or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.values.run import LOCAL_USER
from services.common.checked_fields import invalid_field
from services.results.answers.errors import NoRowToMark
from services.results.answers.golden import Mark, MarkCounts
from services.results.answers.ports import GoldenStore
from services.results.outcomes.outcome import OutcomeKey
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunPlan

MAX_ANSWERS = 1000


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
    golden: GoldenStore

    async def mark(self, order: MarkRequest) -> MarkCounts:
        """Returns how many marks the run has now."""
        if len(order.answers) > MAX_ANSWERS:
            raise invalid_field("answers", f"must be at most {MAX_ANSWERS} at a time")
        record = await self.records.get(order.run_id)
        keys = await self._keys(record.plan, order.answers)
        return await self.golden.mark(order.run_id, keys, order.mark, order.user or LOCAL_USER)

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
        found = await self.golden.positions(task.sample_set_id, row_ids)
        for row_id in row_ids:
            if row_id not in found:
                raise NoRowToMark(run_id=plan.run_id, row_id=row_id)
        return {row_id: task.first_sample + position for row_id, position in found.items()}
