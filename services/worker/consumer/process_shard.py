"""One shard from delivery to acknowledgement: check, execute, finish, and write one log line."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from services.common.clock import Clock
from services.common.structured_logs import get_logger
from services.worker.consumer.execute_shard import EngineLost, RunRefused, ShardExecutor
from services.worker.consumer.in_flight import Abandoned, HeldMessages, Holding
from services.worker.consumer.prefetch import Intake
from services.worker.consumer.quarantine_shard import is_suspect, isolate_shard
from services.worker.execution.batch_outcomes import OutcomeBatcher
from services.worker.execution.run_states import RefusedRuns, RunStates

_SEND_REST_SECONDS = 5.0
_GIVE_BACK_DELAY_SECONDS = 2.0


class Settlement(StrEnum):
    """As it stands in the log."""

    DONE = "done"
    DROPPED = "dropped"
    REST_SENT = "rest sent"
    GIVEN_BACK = "given back"


@dataclass(frozen=True, slots=True)
class Ending:
    """How asking ended: with everything asked, or with a rest that is another's to ask."""

    has_rest: bool = False
    is_fault: bool = False


async def settle_shard(holding: Holding, ending: Ending) -> Settlement:
    """Acknowledges only what the next stage holds durably; raises when it does not."""
    if holding.abandoned in (Abandoned.RUN_ENDED, Abandoned.RUN_WAITS):
        await holding.message.drop()
        return Settlement.DROPPED
    await holding.outcomes_held()
    if not ending.has_rest or not holding.unfinished:
        await holding.message.acknowledge()
        return Settlement.DONE
    return await _hand_on(holding, ending)


async def give_back(holding: Holding) -> Settlement:
    """The whole shard, to be delivered again."""
    await holding.message.give_back(_GIVE_BACK_DELAY_SECONDS)
    return Settlement.GIVEN_BACK


async def _hand_on(holding: Holding, ending: Ending) -> Settlement:
    """What is answered is not asked again: only the rest travels on. A drain is no fault of the samples."""
    faults, message = holding.faults + ending.is_fault, holding.message
    holding.is_handed_on = True
    try:
        async with asyncio.timeout(_SEND_REST_SECONDS):
            await message.send_rest(tuple(holding.unfinished), faults=faults)
    except TimeoutError:
        return await give_back(holding)
    await message.acknowledge()
    return Settlement.REST_SENT


log = get_logger()

# By then the scheduler has failed the run; else its rest is tried elsewhere, or here again.
_REFUSED_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Desk:
    """What is on the worker's table: one of each for its whole life."""

    held: HeldMessages
    intake: Intake
    states: RunStates
    refused: RefusedRuns


class ShardWork:
    def __init__(self, executor: ShardExecutor, batcher: OutcomeBatcher, desk: Desk, clock: Clock) -> None:
        self._executor = executor
        self._batcher = batcher
        self._desk = desk
        self._clock = clock

    async def work_on(self, holding: Holding) -> None:
        """Never raises: what goes wrong here is delivered again, and isolated when it keeps going wrong."""
        started = self._clock.monotonic()
        settlement = Settlement.GIVEN_BACK
        try:
            settlement = await self._work_and_settle(holding)
        except Exception as error:  # the edge of the consumer
            log.error("shard failed", run_id=holding.shard.run_id, shard=holding.shard.number, exc_info=error)
            await _give_back_quietly(holding)
        finally:
            self._release(holding, settlement)
        self._log(holding, settlement, self._clock.monotonic() - started)

    async def _work_and_settle(self, holding: Holding) -> Settlement:
        if not self._desk.states.may_begin(holding.shard):
            wants_it = self._desk.states.wants(holding.shard)
            holding.abandon(Abandoned.RUN_WAITS if wants_it else Abandoned.RUN_ENDED)
            return await settle_shard(holding, Ending())
        if is_suspect(holding):
            await isolate_shard(holding, self._batcher)
            return await settle_shard(holding, Ending())
        return await settle_shard(holding, await self._ask(holding))

    async def _ask(self, holding: Holding) -> Ending:
        """In a task of its own, so that abandoning ends the asking and not the settling."""
        if holding.abandoned is not None:
            return Ending(has_rest=True)
        asking = holding.asking = asyncio.create_task(self._execute(holding), name="ask shard")
        try:
            await asyncio.wait((asking,))
        finally:
            asking.cancel()
        if asking.cancelled():
            return Ending(has_rest=True)
        error = asking.exception()
        if isinstance(error, RunRefused):
            return Ending(has_rest=True)
        if isinstance(error, EngineLost):
            self._desk.intake.close()
            return Ending(has_rest=True, is_fault=error.has_died)
        if error is not None:
            raise error
        return Ending()

    async def _execute(self, holding: Holding) -> None:
        """What is refused rests a little before it travels on, and keeps no room from other runs."""
        try:
            await self._executor.execute(holding)
        except RunRefused:
            with self._desk.intake.aside(len(holding.unfinished), len(holding.shard.samples)):
                await asyncio.sleep(_REFUSED_SECONDS)
            raise

    def _release(self, holding: Holding, settlement: Settlement) -> None:
        self._desk.intake.leave(len(holding.unfinished))
        self._desk.intake.release(len(holding.shard.samples))
        self._desk.held.release(holding, is_finished=settlement is Settlement.DONE)

    def _log(self, holding: Holding, settlement: Settlement, seconds: float) -> None:
        shard = holding.shard
        log.info(
            "shard",
            run_id=shard.run_id,
            shard=shard.number,
            attempt=shard.attempt,
            task=shard.task,
            samples=len(shard.samples),
            unfinished=len(holding.unfinished),
            failed=holding.failed,
            settlement=settlement.value,
            seconds=round(seconds, 3),
        )


async def _give_back_quietly(holding: Holding) -> None:
    try:
        await give_back(holding)
    except Exception as error:  # noqa: BLE001  # it comes back by itself once its time is up
        log.warning("shard not given back", shard=holding.shard.number, error=repr(error))
