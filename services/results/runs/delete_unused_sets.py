"""Deletes sample sets that were never committed, and those that no run uses any more."""

from dataclasses import dataclass
from datetime import timedelta

from services.results.runs.ports import RunRecordStore
from services.results.samples.ports import SampleSetStore

# A run is opened once all of its sets are committed: the planning of a large suite may take hours.
KEEP_UNUSED = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class DeleteUnusedSets:
    """Uncommitted sets are deleted `keep_staged` after their last chunk: their planning has died.

    The stores measure both times: a machine whose clock is wrong would delete what was staged just now.
    """

    records: RunRecordStore
    sample_sets: SampleSetStore
    keep_staged: timedelta

    async def delete(self) -> int:
        """Returns how many sets were deleted. The samples of all of them are deleted at the end."""
        unused = await self.records.delete_unused_sets(KEEP_UNUSED)
        return unused + await self.sample_sets.delete_staged(self.keep_staged)
