"""Codecs of all services: each field of a value that a message took is read from it again."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from google.protobuf.message import Message

from proctor.wire.convert import Codec
from services.results.comparison.comparison import Comparison, Difference
from services.results.comparison.gate import Gate
from services.results.statistics.paired.difference_estimate import DifferenceEstimate
from services.results.summaries.run_summary import GroupSummary, RunSummary, TaskSummary
from services.scheduler.limits.queue_limits import QueueLimits
from services.scheduler.rollouts.rollouts_order import RolloutsOrder
from services.scheduler.runs.lifecycle.run import Run
from services.scheduler.schedules.schedule import Schedule
from tests.fakes.full_values import empty_value, full_value
from tools.house import PRODUCT, ROOT, own_files

# They are answered and never read: a part of each stands in its message in another form.
WRITTEN_ONLY = {
    *(Comparison, Difference, DifferenceEstimate, Gate, GroupSummary, QueueLimits, Run, RunSummary),
    *(RolloutsOrder, Schedule, TaskSummary),
}


def codecs() -> Iterator[tuple[str, Codec[Any, Message]]]:
    """Each by the module that defines it and its name there."""
    for path in own_files(ROOT, *PRODUCT):
        if " = Codec(" in (text := (ROOT / path).read_text(encoding="utf-8")):
            module = path.removesuffix(".py").replace("/", ".")
            for name, codec in vars(import_module(module)).items():
                if isinstance(codec, Codec) and f"{name} = Codec(" in text:
                    yield f"{module}.{name}", codec


CODECS = dict(codecs())
BOTH_WAYS = [name for name, codec in CODECS.items() if codec.value_type not in WRITTEN_ONLY]


def test_codecs_are_found_in_the_services_and_in_what_they_share() -> None:
    assert {name.split(".")[1] for name in CODECS} == {"wire", "scheduler", "results"}
    assert {codec.value_type for codec in CODECS.values()} >= WRITTEN_ONLY


@pytest.mark.parametrize("alternative", [0, 1])
@pytest.mark.parametrize("name", BOTH_WAYS)
def test_every_field_of_a_value_comes_back_from_its_message(name: str, alternative: int) -> None:
    codec = CODECS[name]
    value = full_value(codec.value_type, alternative)
    assert converted(codec, read_back(codec, value)) == converted(codec, value)


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_what_is_empty_stays_empty(name: str) -> None:
    codec = CODECS[name]
    value = empty_value(codec.value_type)
    assert converted(codec, read_back(codec, value)) == converted(codec, value)


def read_back(codec: Codec[Any, Message], value: object) -> object:
    return codec.from_proto(codec.message_type.FromString(codec.to_proto(value).SerializeToString()))


def converted(codec: Codec[Any, Message], value: object) -> dict[str, object]:
    """The fields that the codec converts; the unpaired ones of a value keep their defaults."""
    return {pair.name: getattr(value, pair.name) for pair in codec.pairs}
