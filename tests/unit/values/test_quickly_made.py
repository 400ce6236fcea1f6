"""A value that is quickly made is the value that the frozen dataclass makes."""

import pickle
from dataclasses import dataclass, field, replace

import pytest

from proctor.values.making.quickly_made import quickly_made
from proctor.values.outcome import Answer, Outcome
from proctor.values.sample import Prompt
from proctor.values.usage import Timing, TokenUsage
from services.scheduler.suites.rendering.sample import RenderedSample


@dataclass(frozen=True, slots=True)
class Frozen:
    name: str
    tags: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)
    loud: bool = field(default=False, kw_only=True)
    shown: str = field(default="", init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", self.name.upper() if self.loud else self.name)


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick(Frozen):
    more: int = 1


def test_fields_defaults_and_what_follows_are_set() -> None:
    made = Quick("a", loud=True, more=2)
    assert repr(made).endswith("Quick(name='a', tags=(), facts={}, loud=True, shown='A', more=2)")
    assert Quick("a").facts is not Quick("a").facts


def test_wrong_arguments_are_refused() -> None:
    for arguments in ({}, {"name": "a", "shown": "b"}, {"name": "a", "unknown": 1}):
        with pytest.raises(TypeError, match=r"Quick\.__init__|__init__\(\)"):
            Quick(**arguments)


@pytest.mark.parametrize(
    "value",
    [
        Outcome(1, 0, 2, 1, Answer("yes", "stop"), TokenUsage(1, 2), Timing(0.5)),
        RenderedSample(1, 2, b"d", Prompt("p"), size_bytes=3),
    ],
    ids=["an outcome", "a subclass"],
)
def test_equal_values_are_equal_in_every_way(value: object) -> None:
    again = pickle.loads(pickle.dumps(value))
    assert again == value == replace(value)  # type: ignore[type-var]  # each is a dataclass
    assert hash(again) == hash(value)
    assert not hasattr(value, "__dict__")
