"""Lists who marked answers of a run, and who removed marks."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.requests.page_tokens import number_token, read_number_token
from services.results.answers.golden import MarkChange
from services.results.answers.ports import GoldenStore
from services.results.runs.ports import RunRecordStore

_LIST = "mark changes"


@dataclass(frozen=True, slots=True)
class MarkChangePage:
    """Latest first. The token is empty on the last page."""

    changes: Sequence[MarkChange]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ListMarkChanges:
    records: RunRecordStore
    golden: GoldenStore

    async def list_page(self, run_id: str, size: int, token: str) -> MarkChangePage:
        """Raises `RecordNotFound`, and an error of the field for a token of another list."""
        await self.records.get(run_id)
        before = read_number_token(_LIST, token)
        # One more than is shown: then there is a next page.
        changes = await self.golden.changes(run_id, size + 1, before)
        shown = changes[:size]
        has_more = len(changes) > size
        return MarkChangePage(shown, number_token(_LIST, shown[-1].number) if has_more else "")
