"""Lists what has no final outcome in an epoch, window by window, so that no query grows with the run."""

from dataclasses import dataclass

from services.common.requests.page_tokens import Key, key_token, read_key_token
from services.common.requests.request_fields import checked_page_size
from services.results.outcomes.ports import OutcomeStore
from services.results.runs.open_run import check_epoch
from services.results.runs.ports import RunRecordStore
from services.results.runs.run_plan import RunRecord

# The name of the list in its page tokens.
_LIST = "missing"

# Two numbers each: a page stays far below a message's 16 MiB.
MAX_PER_PAGE = 10_000
# Bounds one statement. A run without gaps costs one statement for each window.
WINDOW_SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class MissingPage:
    """(rollout, sample) pairs in that order; no token on the last page."""

    missing: list[tuple[int, int]]
    next_page_token: str = ""


@dataclass(frozen=True, slots=True)
class ListMissing:
    records: RunRecordStore
    outcomes: OutcomeStore

    async def list_page(self, run_id: str, epoch: int, page_size: int, page_token: str) -> MissingPage:
        size = checked_page_size(page_size, MAX_PER_PAGE, MAX_PER_PAGE)
        record = await self.records.get(run_id)
        check_epoch(record, epoch)
        start = read_key_token(_LIST, page_token, first=(0, 0))
        return await self._fill_page(record, start, size)

    async def _fill_page(self, record: RunRecord, start: Key, page_size: int) -> MissingPage:
        missing: list[tuple[int, int]] = []
        rollout, sample = start
        while rollout < record.plan.rollouts:
            window = range(sample, min(sample + WINDOW_SAMPLES, record.plan.end_sample))
            found = await self.outcomes.missing(record, rollout, window) if window else []
            missing.extend((rollout, number) for number in found if record.plan.is_asked(number, rollout))
            if len(missing) >= page_size:
                return _cut(missing, page_size)
            # An empty window is the end of a rollout: the next one begins at its first sample.
            rollout, sample = (rollout, window.stop) if window else (rollout + 1, 0)
        return MissingPage(missing)


def _cut(missing: list[tuple[int, int]], page_size: int) -> MissingPage:
    """The page ends where it is full; the next one looks again from there, and may be empty."""
    page = missing[:page_size]
    rollout, sample = page[-1]
    return MissingPage(page, key_token(_LIST, (rollout, sample + 1)))
