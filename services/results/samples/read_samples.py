"""Gives samples back to be asked, in the order in which they are wanted."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from services.results.checked_fields import InvalidField
from services.results.samples.errors import SampleNotFound
from services.results.samples.ports import SampleReader

MOST_POSITIONS = 1024

Read = TypeVar("Read")


class ListAskedSamples(Generic[Read]):
    """They pass through as the reader has them."""

    def __init__(self, samples: SampleReader[Read]) -> None:
        self._samples = samples

    async def __call__(self, set_id: str, positions: Sequence[int]) -> list[Read]:
        if len(positions) > MOST_POSITIONS:
            raise InvalidField(field="positions", problem=f"must be at most {MOST_POSITIONS}")
        found = await self._samples.read(set_id, positions)
        for position in positions:
            if position not in found:
                raise SampleNotFound(sample_set_id=set_id, position=position)
        return [found[position] for position in positions]
