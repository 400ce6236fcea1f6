"""Samples that were just rendered: they are sent to workers without a way through results and back."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from proctor.values.code import CodeCheck
from proctor.values.sample import Prompt
from services.scheduler.suites.rendering.sample import RenderedSample

# Of all sets together. What does not fit is read from results.
MAX_BYTES = 32 * 1024 * 1024
# What the objects of a sample take besides its texts.
_OBJECT_BYTES = 400


class AskedSample(NamedTuple):
    """What a worker gets of a sample: without its row, which is about as long again, its target and digest.

    `size_bytes` as of `RenderedSample`. A tuple: one is made of every sample.
    """

    prompt: Prompt
    choices: tuple[str, ...]
    params_json: str
    code_check: CodeCheck | None
    rollout_spec: bytes
    choice_ending: str
    size_bytes: int

    @classmethod
    def of(cls, sample: RenderedSample) -> "AskedSample":
        return cls(
            sample.prompt,
            sample.choices,
            sample.params_json,
            sample.code_check,
            sample.rollout_spec,
            sample.choice_ending,
            sample.size_bytes,
        )


@dataclass(slots=True)
class _Set:
    samples: dict[int, AskedSample] = field(default_factory=dict)
    size_bytes: int = 0


class RenderedSamples:
    """Gives each sample once. Any other is read from results, which stores all of them.

    The sets that were rendered longest ago give way to a new one. Of a set larger than `max_bytes` the first
    samples are kept, which are dispatched first.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._sets: OrderedDict[str, _Set] = OrderedDict()
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def add(self, set_id: str, samples: Sequence[RenderedSample]) -> None:
        kept = self._sets.setdefault(set_id, _Set())
        for sample in samples:
            size_bytes = sample.size_bytes + _OBJECT_BYTES
            if not self._make_room(size_bytes, set_id):
                return
            kept.samples[sample.position] = AskedSample.of(sample)
            kept.size_bytes += size_bytes
            self._size_bytes += size_bytes

    def rename(self, set_id: str, sample_set_id: str) -> None:
        """A set that was rendered is stored under this id, or is equal to one that was."""
        rendered = self._sets.pop(set_id, None)
        self.drop(sample_set_id)
        if rendered is not None:
            self._sets[sample_set_id] = rendered

    def drop(self, set_id: str) -> None:
        if dropped := self._sets.pop(set_id, None):
            self._size_bytes -= dropped.size_bytes

    def take(self, sample_set_id: str, positions: Sequence[int]) -> Mapping[int, AskedSample]:
        """Those of the samples that are kept, by position."""
        kept = self._sets.get(sample_set_id)
        if kept is None:
            return {}
        taken = {at: sample for at in positions if (sample := kept.samples.pop(at, None)) is not None}
        freed = sum([sample.size_bytes + _OBJECT_BYTES for sample in taken.values()])
        kept.size_bytes -= freed
        self._size_bytes -= freed
        if not kept.samples:
            self.drop(sample_set_id)
        return taken

    def _make_room(self, size_bytes: int, set_id: str) -> bool:
        while self._size_bytes + size_bytes > self._max_bytes:
            oldest = next(iter(self._sets))
            if oldest == set_id:
                return False
            self.drop(oldest)
        return True
