"""Proves that a task is sound: its solution scores 1, and an agent that does nothing does not."""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO

from proctor.values.rollout import AgentKind, RanTests, RolloutAgent, RolloutSpec, RolloutTask
from services.common.sandboxes.errors import SandboxError
from services.common.sandboxes.sandbox import TarLimits
from services.common.sandboxes.tar_files import ReadFile, read_files
from services.worker.rollouts.execute_rollout import ExecuteRollout, RolloutExecution
from services.worker.rollouts.trajectory import Trajectory, cut
from services.worker.verification.bundles import inflated

_EXPECTED = {AgentKind.ORACLE: 1.0, AgentKind.NONE: 0.0}
_FULL = 1.0
_LOOKS_LIKE_SOLUTION = re.compile(
    r"(^|/)\.?(solution|oracle|answer|reference|golden)s?(/|\.|$)", re.IGNORECASE
)
_SAID_CHARACTERS = 3000
# Shorter files, such as an empty `__init__.py`, are equal by chance.
_MIN_BYTES = 40


@dataclass(frozen=True, slots=True)
class AgentCheck:
    """`score` is None, and `problem` says why, where there was none. `tests` is how many ran, if known."""

    agent: AgentKind
    expected: float
    score: float | None
    detail: str = ""
    problem: str = ""
    log: str = ""
    seconds: float = 0.0
    suspicions: tuple[str, ...] = ()
    tests: int = 0
    notes: tuple[str, ...] = ()

    @property
    def is_as_expected(self) -> bool:
        """Tests may give a part of the score to what a task begins with, as for those that passed before."""
        if self.agent is AgentKind.NONE:
            return self.score is not None and self.score < _FULL
        return self.score == self.expected


@dataclass(frozen=True, slots=True)
class TaskCheck:
    task_id: str
    agents: tuple[AgentCheck, ...]
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_sound(self) -> bool:
        return all(agent.is_as_expected for agent in self.agents)


@dataclass(frozen=True, slots=True)
class CheckSoundness:
    rollouts: ExecuteRollout

    async def check(self, tasks: Sequence[RolloutTask]) -> AsyncIterator[TaskCheck]:
        for task in tasks:
            agents = [check async for check in self._checks(task)]
            # Those of an execution are without what its image makes void.
            executed = [agent.notes for agent in agents if agent.score is not None] or [task.notes]
            notes = dict.fromkeys(note for each in executed for note in each)
            warnings = (*warnings_of(task), *_credited(agents))
            yield TaskCheck(task.task_id, tuple(agents), warnings, tuple(notes))

    async def _checks(self, task: RolloutTask) -> AsyncIterator[AgentCheck]:
        """As in an order, what ran on the solution is known afterwards."""
        for agent in _EXPECTED:
            check, ran = await self._check(task, agent)
            yield check
            if agent is AgentKind.ORACLE and check.is_as_expected:
                task = replace(task, solved_tests=ran)

    async def _check(self, task: RolloutTask, agent: AgentKind) -> tuple[AgentCheck, RanTests]:
        check = AgentCheck(agent, _EXPECTED[agent], None)
        if agent is AgentKind.ORACLE and not task.solution:
            problem = "the task has no solution (solution/solve.sh, solution.sh)"
            return replace(check, problem=problem), RanTests()
        rollout_spec = RolloutSpec(task, RolloutAgent(agent))
        try:
            rollout_result = await self.rollouts.execute(
                RolloutExecution(rollout_spec, f"check-{task.task_id}")
            )
        except SandboxError as error:
            return replace(check, problem=str(error)), RanTests()
        result = rollout_result.result
        is_oracle, is_less = agent is AgentKind.ORACLE, result.score < _EXPECTED[agent]
        checked = replace(
            check,
            score=result.score,
            detail=result.detail,
            log=result.log + (_said(rollout_result.trajectory) if is_oracle and is_less else ""),
            seconds=rollout_result.seconds,
            suspicions=result.suspicions,
            tests=result.ran.count,
            notes=rollout_result.notes,
        )
        return checked, result.ran


def _said(trajectory: Trajectory) -> str:
    """Why a solution scores less is mostly in what it printed."""
    return f"\n=== the solution\n{cut(trajectory.last_output, _SAID_CHARACTERS)}"


def _credited(agents: Sequence[AgentCheck]) -> Iterator[str]:
    for agent in agents:
        if agent.agent is AgentKind.NONE and agent.is_as_expected and agent.score:
            yield f"the tests give {agent.score:g} to no work at all, with which every score of it begins"


def warnings_of(task: RolloutTask) -> Iterator[str]:
    """Solutions and tests that the agent can see in its workspace."""
    seen = {file.name: file.content for file in _files(task.workspace)}
    seen |= {f"/{file.name}": file.content for file in _files(task.others)}
    for name in seen:
        if _LOOKS_LIKE_SOLUTION.search(name):
            yield f"the agent sees {name}, which looks like a solution"
    hidden = {
        file.content: (kind, file.name)
        for kind, bundle in (("solution", task.solution), ("tests", task.tests))
        for file in _files(bundle)
        # Files that a step adds to the workspace are for the agent's eyes.
        if len(file.content) >= _MIN_BYTES and not file.name.startswith("workdirs/")
    }
    for name, content in seen.items():
        if content in hidden:
            kind, of = hidden[content]
            yield f"the agent sees {name}, which is {of} of the {kind}"


def _files(bundle: bytes) -> list[ReadFile]:
    return list(read_files(BytesIO(inflated(bundle)), "the task", TarLimits()))
