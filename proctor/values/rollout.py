"""A rollout: a task with its files and its verifier, and the agent that works on it in a sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from proctor.values.contract_enum import ContractEnum

_MIB = 1024**2


class VerifierKind(ContractEnum):
    """How the files that an agent left are judged."""

    REWARD_FILE = "reward_file", 1
    RUBRICS = "rubrics", 2
    PYTEST_SUMMARY = "pytest_summary", 3


class AgentKind(ContractEnum):
    """Who works on a task: the task's own solution, no one, or a model that writes commands."""

    ORACLE = "oracle", 1
    NONE = "none", 2
    SHELL = "shell", 3


@dataclass(frozen=True, slots=True)
class Rubric:
    """A part of a score. `scripts` are paths below the task's `cwd`; each is a file of pytest."""

    rubric_id: str
    criterion: str
    weight: float
    scripts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """Limits of a sandbox, and the seconds that agent and verifier have."""

    cpus: float = 1.0
    memory_bytes: int = 1024 * _MIB
    disk_bytes: int = 256 * _MIB
    agent_seconds: float = 1800.0
    verifier_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class RolloutTask:
    """`workspace`, `tests` and `solution` are tar files compressed by gzip; empty means none.

    The workspace is unpacked in `workdir`, and commands run in `cwd`. Tests are unpacked in `tests_folder`,
    of a second sandbox. A solution is unpacked in /solution, where `solve.sh` is executed. `notes` say in
    sentences what of the task's folder has no effect here.
    """

    task_id: str
    instruction: str
    verifier: VerifierKind
    workdir: str = "/app"
    cwd: str = "/app"
    tests_folder: str = "/tests"
    test_command: tuple[str, ...] = ()
    rubrics: tuple[Rubric, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    verifier_environment: Mapping[str, str] = field(default_factory=dict)
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    workspace: bytes = b""
    tests: bytes = b""
    solution: bytes = b""
    notes: tuple[str, ...] = ()

    @property
    def bundle_bytes(self) -> int:
        return len(self.workspace) + len(self.tests) + len(self.solution)


@dataclass(frozen=True, slots=True)
class RolloutAgent:
    """`max_steps` are answers of the model, `max_tokens` its tokens over all steps, prompts included."""

    kind: AgentKind = AgentKind.SHELL
    max_steps: int = 50
    max_tokens: int = 500_000
    command_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Rollout:
    """What a worker is sent for one rollout."""

    task: RolloutTask
    agent: RolloutAgent = field(default_factory=RolloutAgent)
