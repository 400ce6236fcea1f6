"""Enums of the domain and of the contracts, in both directions."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from proctor.v1 import run_pb2, sample_pb2, scheduler_service_pb2
from proctor.values.scoring import OutputType
from services.scheduler.runs.lifecycle.run import RunState
from services.scheduler.runs.orders.run_order import Priority, PromptForm, ScoringMethod, Truncation
from services.scheduler.runs.reads.run_list import RunKind

Word = TypeVar("Word", bound=Enum)
Number = TypeVar("Number", bound=int)

RUN_STATES: dict[RunState, run_pb2.RunState.ValueType] = {
    RunState.PENDING: run_pb2.RUN_STATE_PENDING,
    RunState.RUNNING: run_pb2.RUN_STATE_RUNNING,
    RunState.PAUSED: run_pb2.RUN_STATE_PAUSED,
    RunState.COMPLETED: run_pb2.RUN_STATE_COMPLETED,
    RunState.FAILED: run_pb2.RUN_STATE_FAILED,
    RunState.CANCELLED: run_pb2.RUN_STATE_CANCELLED,
}
RUN_KINDS: dict[RunKind, scheduler_service_pb2.RunKind.ValueType] = {
    RunKind.SUITE: scheduler_service_pb2.RUN_KIND_SUITE,
    RunKind.DATASET: scheduler_service_pb2.RUN_KIND_DATASET,
}
PRIORITIES: dict[Priority, run_pb2.Priority.ValueType] = {
    Priority.HIGH: run_pb2.PRIORITY_HIGH,
    Priority.NORMAL: run_pb2.PRIORITY_NORMAL,
    Priority.LOW: run_pb2.PRIORITY_LOW,
}
SCORING_METHODS: dict[ScoringMethod, run_pb2.ScoringMethod.ValueType] = {
    ScoringMethod.LOGLIKELIHOOD: run_pb2.SCORING_METHOD_LOGLIKELIHOOD,
    ScoringMethod.GENERATE: run_pb2.SCORING_METHOD_GENERATE,
    ScoringMethod.CONSTRAINED: run_pb2.SCORING_METHOD_CONSTRAINED,
}
TRUNCATIONS: dict[Truncation, run_pb2.Truncation.ValueType] = {
    Truncation.NONE: run_pb2.TRUNCATION_NONE,
    Truncation.LEFT: run_pb2.TRUNCATION_LEFT,
}
PROMPT_FORMS: dict[PromptForm, run_pb2.PromptForm.ValueType] = {
    PromptForm.COMPLETION: run_pb2.PROMPT_FORM_COMPLETION,
    PromptForm.CHAT: run_pb2.PROMPT_FORM_CHAT,
}
OUTPUT_TYPES: dict[OutputType, sample_pb2.OutputType.ValueType] = {
    OutputType.MULTIPLE_CHOICE: sample_pb2.OUTPUT_TYPE_MULTIPLE_CHOICE,
    OutputType.GENERATE_UNTIL: sample_pb2.OUTPUT_TYPE_GENERATE_UNTIL,
}


def word_of(words: dict[Word, Number], number: int) -> Word | None:
    """None for unspecified, and for what a newer client knows and we do not."""
    return next((word for word, known in words.items() if known == number), None)
