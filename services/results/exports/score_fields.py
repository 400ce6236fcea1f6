"""Columns of a table of outcomes: the fields of a record, with one column per metric for the scores."""

from collections.abc import Sequence

SCORE_PREFIX = "score_"

_BEFORE_SCORES = (
    "task",
    "doc_id",
    "row_id",
    "rollout",
    "status",
    "prompt",
    "choices",
    "target",
    "prediction",
    "answer",
    "finish_reason",
    "choice_logprobs",
    "body",
    "failure_class",
    "failure_message",
)
_AFTER_SCORES = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "total_seconds",
    "queue_seconds",
    "first_token_seconds",
    "between_tokens_seconds",
    "is_reused",
    "digest",
)


def field_names(metrics: Sequence[str]) -> tuple[str, ...]:
    return (*_BEFORE_SCORES, *(SCORE_PREFIX + metric for metric in metrics), *_AFTER_SCORES)
