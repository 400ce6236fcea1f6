"""Lists who marked answers of a run as golden, and who removed marks."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.common.checked_fields import read_page_token, write_page_token
from services.results.answers.golden import MarkChange
from services.results.answers.ports import GoldenStore
from services.results.runs.ports import RunRecordStore

_LIST = "mark changes"
# Numbers of changes are a bigint; asyncpg refuses larger ones with an error of its own.
_END_OF_NUMBERS = 2**63


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
        before = read_page_token(_LIST, token, _number) if token else None
        # One more than is shown tells whether there are more.
        changes = await self.golden.changes(run_id, size + 1, before)
        shown = changes[:size]
        has_more = len(changes) > size
        return MarkChangePage(shown, write_page_token(_LIST, shown[-1].number) if has_more else "")


def _number(parts: list[str]) -> int:
    [text] = parts
    number = int(text)
    if not 0 < number < _END_OF_NUMBERS:
        raise ValueError("no change has such a number")
    return number
