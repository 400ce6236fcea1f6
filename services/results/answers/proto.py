"""Filters and rows side by side, between the contract and the domain."""

from proctor.v1 import answer_service_pb2 as pb
from proctor.v1 import results_service_pb2 as results_pb2
from services.results.answers.answer_filter import AnswerFilter
from services.results.answers.side_by_side import ShownRow
from services.results.checked_fields import checked_text
from services.results.outcomes.outcome import ListedOutcome
from services.results.outcomes.proto import recorded_to_proto
from services.results.samples.sample import target_as_text


def filter_from_proto(message: results_pb2.OutcomeFilter) -> AnswerFilter:
    return AnswerFilter(
        row_id=checked_text("filter.row_id", message.row_id),
        text=checked_text("filter.text", message.text),
        metric=checked_text("filter.metric", message.metric),
        min_score=message.min_score if message.HasField("min_score") else None,
        max_score=message.max_score if message.HasField("max_score") else None,
        min_characters=message.min_characters if message.HasField("min_characters") else None,
        max_characters=message.max_characters if message.HasField("max_characters") else None,
        is_golden=message.is_golden,
    )


def row_to_proto(row: ShownRow) -> pb.SideBySideRow:
    sample = row.sample
    return pb.SideBySideRow(
        digest=sample.digest,
        row_id=sample.row_id,
        doc_id=sample.doc_id,
        prompt=sample.prompt.as_text,
        target=target_as_text(sample.target, row.task.scoring.target_delimiter),
        answers=[_answer(listed) for listed in row.answers],
        is_differing=row.is_differing,
    )


def _answer(listed: ListedOutcome | None) -> pb.SideBySideAnswer:
    """Without the fields that the row has already."""
    if listed is None:
        return pb.SideBySideAnswer()
    recorded = recorded_to_proto(listed)
    for name in ("prompt", "choices", "target"):
        recorded.ClearField(name)
    return pb.SideBySideAnswer(outcome=recorded)
