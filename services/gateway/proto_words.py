"""Proto values in the words of the REST interface: enum names without prefix, times as datetimes."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import run_pb2

STATES: dict[str, run_pb2.RunState.ValueType] = {
    name.removeprefix("RUN_STATE_").lower(): value for name, value in run_pb2.RunState.items() if value
}


def state_word(state: run_pb2.RunState.ValueType) -> str:
    return run_pb2.RunState.Name(state).removeprefix("RUN_STATE_").lower()


def scoring_word(method: run_pb2.ScoringMethod.ValueType) -> str:
    return run_pb2.ScoringMethod.Name(method).removeprefix("SCORING_METHOD_").lower()


def moment(timestamp: Timestamp) -> datetime | None:
    """None for a time that has not come."""
    return timestamp.ToDatetime(UTC) if timestamp.seconds else None
