"""What the leader does for batches: their files are written once their runs are over, a few at a time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.scheduler.batches.errors import BatchNotFound
from services.scheduler.batches.finish_batch import FinishBatch
from services.scheduler.batches.ports import LedBatchStore
from services.scheduler.batches.stored_batch import BatchId
from services.scheduler.leadership.leader_election import FencingToken, LeadershipLost
from services.scheduler.uploads.stored_file import FileId

log = get_logger()

AT_A_TIME = 2
_ROUND_SECONDS = 0.5
_FIRST_REST_SECONDS = 1.0
_LONGEST_REST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Rest:
    """A batch whose files could not be written is left alone for a while, each time for longer."""

    seconds: float
    until: float


@dataclass
class _Term:
    fencing_token: FencingToken
    group: asyncio.TaskGroup
    going: set[BatchId] = field(default_factory=set)
    resting: dict[BatchId, _Rest] = field(default_factory=dict)


@dataclass(frozen=True)
class LeadBatches:
    """Begins a term; keeps nothing between terms."""

    batches: LedBatchStore
    finishing: FinishBatch
    clock: Clock
    new_file_id: Callable[[], FileId]

    async def lead(self, token: FencingToken) -> NoReturn:
        """Until cancelled, or until another leads (`LeadershipLost`)."""
        async with asyncio.TaskGroup() as group:
            term = _Term(token, group)
            while True:
                await self._begin(term)
                await asyncio.sleep(_ROUND_SECONDS)

    async def _begin(self, term: _Term) -> None:
        room = AT_A_TIME - len(term.going)
        if not room:
            return
        now = self.clock.monotonic()
        others = term.going | {one for one, rest in term.resting.items() if rest.until > now}
        try:
            wanted = await self.batches.to_finish(others, room)
        except Exception as error:  # noqa: BLE001  # the edge of a loop that must not end
            log.warning("batches not looked up", error=repr(error))
            return
        for batch_id in wanted:
            term.going.add(batch_id)
            term.group.create_task(self._finish(term, batch_id), name=f"batch {batch_id}")

    async def _finish(self, term: _Term, batch_id: BatchId) -> None:
        try:
            if await self.finishing.finish(term.fencing_token, batch_id, self.new_file_id):
                log.info("batch files written", batch=batch_id)
            term.resting.pop(batch_id, None)
        except LeadershipLost:
            raise
        except BatchNotFound:
            log.info("batch deleted before its files were written", batch=batch_id)
        except Exception as error:  # noqa: BLE001  # one batch's trouble is not the others'
            rest = self._rest_after(term.resting.get(batch_id))
            term.resting[batch_id] = rest
            log.warning(
                "batch files not written", batch=batch_id, error=repr(error), again_in_seconds=rest.seconds
            )
        finally:
            term.going.discard(batch_id)

    def _rest_after(self, last: _Rest | None) -> _Rest:
        seconds = min(last.seconds * 2, _LONGEST_REST_SECONDS) if last else _FIRST_REST_SECONDS
        return _Rest(seconds, self.clock.monotonic() + seconds)
