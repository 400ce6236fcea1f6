"""The port of decisions: outcomes of named samples."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from services.results.decisions.answered_pairs import AnsweredSample


class AnsweredSamples(Protocol):
    async def read(
        self, run_id: str, samples: Sequence[int], metrics: Sequence[str]
    ) -> Mapping[int, AnsweredSample]:
        """Outcomes in the present epoch by sample; `metrics`: the name of the score in each task."""
        ...
