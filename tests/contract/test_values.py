"""Enums of `proctor/values` have the words and numbers of the contracts."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from proctor.v1 import (
    comparison_pb2,
    leaderboard_pb2,
    model_pb2,
    outcome_pb2,
    rollout_pb2,
    run_pb2,
    sample_pb2,
)
from proctor.values.comparison import TrendDirection, Verdict
from proctor.values.contract_enum import ContractEnum
from proctor.values.outcome import FailureClass, OutcomeStatus
from proctor.values.priority import Priority
from proctor.values.providers.worker import WorkerState
from proctor.values.rollout import AgentKind, VerifierKind
from proctor.values.run import RunKind, RunState
from proctor.values.scoring import OutputType, PromptForm, ScoringMethod, Truncation

ENUMS: Mapping[type[ContractEnum], Any] = {
    AgentKind: rollout_pb2.AgentKind,
    FailureClass: outcome_pb2.FailureClass,
    OutcomeStatus: outcome_pb2.OutcomeStatus,
    OutputType: sample_pb2.OutputType,
    Priority: run_pb2.Priority,
    PromptForm: run_pb2.PromptForm,
    RunKind: run_pb2.RunKind,
    RunState: run_pb2.RunState,
    ScoringMethod: run_pb2.ScoringMethod,
    TrendDirection: leaderboard_pb2.TrendDirection,
    Truncation: run_pb2.Truncation,
    Verdict: comparison_pb2.Verdict,
    VerifierKind: rollout_pb2.VerifierKind,
    WorkerState: model_pb2.WorkerState,
}


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: str(enum.__name__))
def test_words_and_numbers_of_an_enum_are_those_of_the_contract(enum: type[ContractEnum]) -> None:
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"
    contract = {name: number for name, number in ENUMS[enum].items() if number}
    assert {f"{prefix}{member.name}": member.number for member in enum} == contract
    assert all(member == member.name.lower() for member in enum)
