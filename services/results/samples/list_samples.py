"""Reads samples of a set in the order of the request, to be sent to a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.results.checked_fields import InvalidField
from services.results.samples.errors import SampleNotFound
from services.results.samples.ports import SampleReader

MOST_POSITIONS = 1024

Read = TypeVar("Read")


@dataclass(frozen=True)
class ReadSamples(Generic[Read]):
    """Samples stay in the form in which the reader has them."""

    samples: SampleReader[Read]

    async def read(self, set_id: str, positions: Sequence[int]) -> list[Read]:
        if len(positions) > MOST_POSITIONS:
            raise InvalidField(field="positions", problem=f"must be at most {MOST_POSITIONS}")
        found = await self.samples.read(set_id, positions)
        for position in positions:
            if position not in found:
                raise SampleNotFound(sample_set_id=set_id, position=position)
        return [found[position] for position in positions]
