"""`proctor/values` holds values only, and their enums say the same as the contracts."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
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

VALUES = Path(__file__).resolve().parents[2] / "proctor" / "values"
ALLOWED_IMPORTS = {
    "collections.abc",
    "dataclasses",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "hmac",
    "json",
    "math",
    "re",
    "types",
    "typing",
    "urllib.parse",
    "yaml",  # reads a text; who has the file opens it
}
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


def modules() -> list[Path]:
    return sorted(VALUES.rglob("*.py"))


def imported_by(module: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.stem)
def test_a_module_of_values_imports_values_and_plain_parts_of_the_language(module: Path) -> None:
    foreign = {name for name in imported_by(module) if not name.startswith("proctor.values")}
    assert foreign <= ALLOWED_IMPORTS


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.stem)
def test_a_module_of_values_does_no_io_and_waits_for_nothing(module: Path) -> None:
    nodes = list(ast.walk(ast.parse(module.read_text(encoding="utf-8"))))
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in nodes)
    called = {
        node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called.isdisjoint({"open", "print", "input"})


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.stem)
def test_values_are_frozen(module: Path) -> None:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            assert ast.unparse(decorator) == "dataclass(frozen=True, slots=True)"


@pytest.mark.parametrize("enum", ENUMS, ids=lambda enum: str(enum.__name__))
def test_words_and_numbers_of_an_enum_are_those_of_the_contract(enum: type[ContractEnum]) -> None:
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", enum.__name__).upper() + "_"
    contract = {name: number for name, number in ENUMS[enum].items() if number}
    assert {f"{prefix}{member.name}": member.number for member in enum} == contract
    assert all(member == member.name.lower() for member in enum)
