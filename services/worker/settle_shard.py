"""What becomes of a message once asking has ended: acknowledged, dropped, or its rest handed on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from services.worker.hold_messages import Abandoned, Holding

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
