"""Proto values in the words of the REST interface: enum names without prefix, times as datetimes."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from proctor.v1 import comparison_pb2, leaderboard_pb2, outcome_pb2, run_pb2, sample_pb2

STATES: dict[str, run_pb2.RunState.ValueType] = {
    name.removeprefix("RUN_STATE_").lower(): value for name, value in run_pb2.RunState.items() if value
}

PRIORITIES: dict[str, run_pb2.Priority.ValueType] = {
    name.removeprefix("PRIORITY_").lower(): value for name, value in run_pb2.Priority.items() if value
}

# "unspecified" with them: no choice was made.
SCORING_METHODS: dict[str, run_pb2.ScoringMethod.ValueType] = {
    name.removeprefix("SCORING_METHOD_").lower(): value for name, value in run_pb2.ScoringMethod.items()
}


def state_word(state: run_pb2.RunState.ValueType) -> str:
    return run_pb2.RunState.Name(state).removeprefix("RUN_STATE_").lower()


def status_word(status: outcome_pb2.OutcomeStatus.ValueType) -> str:
    return outcome_pb2.OutcomeStatus.Name(status).removeprefix("OUTCOME_STATUS_").lower()


def failure_word(failure_class: outcome_pb2.FailureClass.ValueType) -> str:
    return outcome_pb2.FailureClass.Name(failure_class).removeprefix("FAILURE_CLASS_").lower()


def board_of(order: run_pb2.RunOrder) -> str:
    """Under which its figures are listed: its suite, or its data set in the place of one."""
    return order.suite or order.dataset_id


def priority_word(priority: run_pb2.Priority.ValueType) -> str:
    return run_pb2.Priority.Name(priority).removeprefix("PRIORITY_").lower()


def scoring_word(method: run_pb2.ScoringMethod.ValueType) -> str:
    return run_pb2.ScoringMethod.Name(method).removeprefix("SCORING_METHOD_").lower()


def choice_scoring(method: run_pb2.ScoringMethod.ValueType) -> str:
    """Empty where there are no choices to score."""
    return "" if method == run_pb2.SCORING_METHOD_UNSPECIFIED else scoring_word(method)


def output_word(output_type: sample_pb2.OutputType.ValueType) -> str:
    return sample_pb2.OutputType.Name(output_type).removeprefix("OUTPUT_TYPE_").lower()


def verdict_word(verdict: comparison_pb2.Verdict.ValueType) -> str:
    return comparison_pb2.Verdict.Name(verdict).removeprefix("VERDICT_").lower()


def trend_word(direction: leaderboard_pb2.TrendDirection.ValueType) -> str | None:
    """None where there is no previous run."""
    if direction == leaderboard_pb2.TREND_DIRECTION_UNSPECIFIED:
        return None
    return leaderboard_pb2.TrendDirection.Name(direction).removeprefix("TREND_DIRECTION_").lower()


def moment(timestamp: Timestamp) -> datetime | None:
    """None for a time that has not come."""
    return timestamp.ToDatetime(UTC) if timestamp.seconds else None
