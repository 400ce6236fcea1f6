"""A codec pairs fields, converts what needs converting, and refuses what it cannot pair."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import run_pb2, sample_pb2, work_messages_pb2
from proctor.values.generation import GenerationParams
from proctor.values.outcome import Answer, Outcome
from proctor.values.priority import Priority
from proctor.values.run import RunState
from proctor.values.scoring import GroupMetric, TaskScoring
from proctor.wire import well_known
from proctor.wire.convert import Codec
from proctor.wire.enums import member_of, number_of
from proctor.wire.errors import FieldsDiffer, UnknownNumber
from proctor.wire.values import OUTCOME, PARAMS, SCORING
from tests.fakes.full_values import full_value


@dataclass(frozen=True, slots=True)
class Control:
    """Optional enum, span of time, and a field that is not sent."""

    state: RunState | None
    epoch: int
    time_left: timedelta | None = None
    note: str = ""
    is_spent: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    is_weighted_by_size: bool


@dataclass(frozen=True, slots=True)
class Lines:
    group: str
    metrics: tuple[Line, ...]
    tasks: tuple[str, ...] = ()


CONTROL = Codec(
    Control,
    work_messages_pb2.RunControl,
    names={"is_spent": "is_request_retry_budget_spent"},
    unpaired={"note"},
)


@pytest.mark.parametrize("alternative", [0, 1])
def test_a_union_is_the_oneof_of_its_message(alternative: int) -> None:
    value = full_value(Outcome, alternative)
    message = OUTCOME.to_proto(value)
    assert message.WhichOneof("result") == ("answer", "failure")[alternative]
    assert OUTCOME.from_proto(message) == value


def test_an_empty_alternative_is_set_all_the_same() -> None:
    message = OUTCOME.to_proto(Outcome(0, 0, 0, 0, Answer()))
    assert message.HasField("answer")


def test_names_that_differ_and_what_is_not_sent() -> None:
    left = timedelta(hours=2, microseconds=5)
    value = Control(RunState.PAUSED, 2, left, "kept here", is_spent=True)
    message = CONTROL.to_proto(value)
    assert (message.state, message.is_request_retry_budget_spent) == (run_pb2.RUN_STATE_PAUSED, True)
    assert CONTROL.from_proto(message) == Control(RunState.PAUSED, 2, left, is_spent=True)


def test_what_is_unset_is_none_and_what_is_zero_is_set() -> None:
    assert CONTROL.from_proto(CONTROL.to_proto(Control(None, 0))) == Control(None, 0)
    message = PARAMS.to_proto(GenerationParams(temperature=0.0, seed=0))
    assert {held.name for held, _ in message.ListFields()} == {"temperature", "seed"}
    assert PARAMS.from_proto(run_pb2.GenerationParams()) == GenerationParams()


def test_a_structure_keeps_its_shape_and_its_odd_numbers() -> None:
    given: Mapping[str, object] = {"a": [1.5, {"b": None}], "c": True}
    assert (
        PARAMS.from_proto(PARAMS.to_proto(GenerationParams(provider_params=given))).provider_params == given
    )
    message = run_pb2.GenerationParams()
    message.provider_params["x"] = math.nan
    assert math.isnan(float(str(PARAMS.from_proto(message).provider_params["x"])))


def test_a_number_that_only_a_newer_version_knows_is_refused_by_field() -> None:
    message = sample_pb2.TaskScoring()
    message.output_type = 99  # type: ignore[assignment]  # as a newer version sends it
    with pytest.raises(UnknownNumber) as refused:
        SCORING.from_proto(message)
    assert (refused.value.field, refused.value.number) == ("output_type", 99)
    with pytest.raises(UnknownNumber):
        SCORING.from_proto(sample_pb2.TaskScoring())


def test_a_codec_of_an_inner_value_is_handed_in_where_names_differ() -> None:
    inner = Codec(Line, sample_pb2.GroupMetric, names={"name": "metric"})
    codec = Codec(Lines, sample_pb2.TaskGroup, nested=(inner,))
    value = full_value(Lines)
    assert codec.to_proto(value).metrics[0].metric == value.metrics[0].name
    assert codec.from_proto(codec.to_proto(value)) == value


def test_a_field_without_a_partner_is_refused_when_the_codec_is_made() -> None:
    with pytest.raises(FieldsDiffer, match="no field name for name"):
        Codec(Line, sample_pb2.GroupMetric)
    with pytest.raises(FieldsDiffer, match="leaves out is_request_retry_budget_spent"):
        Codec(Control, work_messages_pb2.RunControl, unpaired={"note", "is_spent"})
    with pytest.raises(FieldsDiffer, match="no field output_type"):
        Codec(TaskScoring, sample_pb2.GroupMetric)


def test_fill_writes_into_a_message_where_it_lies() -> None:
    group = sample_pb2.TaskGroup()
    Codec(GroupMetric, sample_pb2.GroupMetric).fill(group.metrics.add(), GroupMetric("acc"))
    assert group.metrics[0] == sample_pb2.GroupMetric(metric="acc", is_weighted_by_size=True)


def test_single_members_and_numbers() -> None:
    assert member_of(Priority, run_pb2.PRIORITY_LOW) is Priority.LOW
    assert member_of(Priority, 0) is member_of(Priority, 99) is None
    assert number_of(Priority.LOW) == run_pb2.PRIORITY_LOW
    assert number_of(None) == 0


def test_times_are_written_as_protobuf_writes_them() -> None:
    india = timezone(timedelta(hours=5, minutes=30))
    for time in (
        datetime(2026, 11, 23, 9, 38, 3, 123456, tzinfo=UTC),
        datetime(2026, 11, 23, 9, 38, 3, 123456, tzinfo=india),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2026, 11, 23),  # noqa: DTZ001  # without a zone
    ):
        ours, theirs = Timestamp(), Timestamp()
        well_known.fill_timestamp(ours, time)
        theirs.FromDatetime(time)
        assert ours == theirs
