"""What came of a sample, and whether its answer is golden, as several pages mark it."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import outcome_pb2
from proctor.wire.enums import word_of


@dataclass(frozen=True, slots=True)
class GoldenView:
    """The form of one answer in `answers/golden_part`. `name` is its key on the keyboard, "" for none."""

    run_id: str
    sample: int
    rollout: int
    is_golden: bool
    name: str = ""


def outcome_mark(recorded: outcome_pb2.RecordedOutcome, metrics: Sequence[str]) -> tuple[str, str]:
    """The class and the word of an outcome; the word of a score between right and wrong is its figure."""
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        failure = word_of(outcome_pb2.FailureClass, recorded.outcome.failure.failure_class)
        return "failed", failure.replace("_", " ")
    if recorded.status == outcome_pb2.OUTCOME_STATUS_UNPARSED:
        return "failed", "not parsed"
    # The first metric of the task; some metrics have no figure of a single answer.
    names = [name for name in metrics if name in recorded.scores] or sorted(recorded.scores)
    if not names:
        return "answered", "answered"
    value = recorded.scores[names[0]]
    return {1.0: ("right", "right"), 0.0: ("wrong", "wrong")}.get(value, ("answered", f"{value:.3g}"))
