"""The badge of a sample's outcome and a person's mark of its answer, for several pages."""

from collections.abc import Sequence
from dataclasses import dataclass

from proctor.v1 import outcome_pb2, run_pb2
from proctor.values.judging.scale import labels_of, verdict_in_words
from proctor.wire.comparison_notes import compares
from proctor.wire.enums import word_of
from services.gateway.api.dataset_runs.schemas import AnswerShown
from services.gateway.pages.text import is_share, score

GOLDEN, WRONG = "golden", "wrong"


@dataclass(frozen=True, slots=True)
class MarkView:
    """The form of one answer in `answers/marks_part`: its mark is golden, wrong or "".

    `name` is its key on the keyboard, "" for none; with Shift it marks the answer as wrong. `subject` says
    what is marked where it is no answer: a verdict.
    """

    run_id: str
    sample: int
    rollout: int
    mark: str
    name: str = ""
    subject: str = ""

    @property
    def key(self) -> str:
        return f"{self.sample}.{self.rollout}"


def mark_of(answer: outcome_pb2.RecordedOutcome | AnswerShown) -> str:
    return GOLDEN if answer.is_golden else WRONG if answer.is_marked_wrong else ""


def silence(reasoning: str, finish_reason: str) -> str:
    """Words for an answer without a text."""
    ended = f", ended by {finish_reason}" if finish_reason else ""
    return f"nothing but reasoning{ended}" if reasoning else f"empty{ended}"


def outcome_badge(recorded: outcome_pb2.RecordedOutcome, metrics: Sequence[str]) -> tuple[str, str]:
    """The CSS class and the word of an outcome's badge; a score that is neither right nor wrong is shown."""
    if recorded.status == outcome_pb2.OUTCOME_STATUS_FAILED:
        failure = word_of(outcome_pb2.FailureClass, recorded.outcome.failure.failure_class)
        return "failed", failure.replace("_", " ")
    if recorded.status == outcome_pb2.OUTCOME_STATUS_UNPARSED:
        return "failed", "unparsed"
    # The first metric of the task; some metrics have no figure of a single answer.
    names = [name for name in metrics if name in recorded.scores] or sorted(recorded.scores)
    if not names:
        return "answered", "answered"
    value, graded = recorded.scores[names[0]], ("answered", score(recorded.scores[names[0]], names[0]))
    if not is_share(names[0], value):
        return graded
    return {1.0: ("right", "right"), 0.0: ("wrong", "wrong")}.get(value, graded)


def judge_of(run: run_pb2.Run) -> run_pb2.Judge | None:
    """Whose verdicts the answers of the run are; None for any other run."""
    return run.order.judge if run.order.judge.run_id else None


def verdict_badge(recorded: outcome_pb2.RecordedOutcome, judge: run_pb2.Judge) -> tuple[str, str]:
    """The badge of a judge's answer: its verdict is neither right nor wrong."""
    if recorded.status != outcome_pb2.OUTCOME_STATUS_SCORED:
        return outcome_badge(recorded, ())
    return "answered", verdict_in_words(recorded.prediction, labels_of(judge.scale))


def verdict_bounds(judge: run_pb2.Judge) -> tuple[str, str]:
    """Verdicts with the scores 1 and 0 in words; "" where the scale has none, or several."""
    if compares(judge):
        return "won", "lost"
    labels = labels_of(judge.scale)
    named = [[label for label, score in labels.items() if score == bound] for bound in (1.0, 0.0)]
    best, worst = (verdict_in_words(found[0], labels) if len(found) == 1 else "" for found in named)
    return best, worst
