"""Errors of rollouts."""

from proctor.values.outcome import Failure
from proctor.values.usage import NO_TOKENS, TokenUsage
from services.common.sandboxes.errors import SandboxError


class ArtifactNotStored(Exception):
    """`is_final`: what comes later would not be stored either."""

    def __init__(self, problem: str, *, is_final: bool) -> None:
        super().__init__(problem)
        self.is_final = is_final


class FilesNotFetched(SandboxError):
    """The files of the task cannot be fetched: {problem}"""


class FilesNotCollected(SandboxError):
    """{problem} Raise PROCTOR_WORKER_ROLLOUT_MAX_FILES or PROCTOR_WORKER_ROLLOUT_MAX_BYTES of the worker."""


class FilesNotReached(SandboxError):
    """The solution scores {score} ({detail}), and left {files}, which are not in the sandbox of its tests."""


class FolderNotWritable(SandboxError):
    """The solution scores {score} ({detail}), and could not write {path}: its sandbox has that read-only."""


class FolderNotGiven(SandboxError):
    """The task works in {folder}, which only process sandboxes and fresh verification can give it."""


class ProgramNotInstalled(SandboxError):
    """The program {program} is not installed: {problem}. PROCTOR_WORKER_AGENT_PROGRAMS names its folder."""


class SolutionLacksProgram(SandboxError):
    """The solution scores {score} ({detail}), since its sandbox lacks {name}: {reason}."""


class SolutionLacksNetwork(SandboxError):
    """The solution scores {score} ({detail}), and needs a network, which no sandbox has: {line}"""


class SolutionMayLack(SandboxError):
    """The solution scores {score} ({detail}), and its Dockerfile has what is not executed: {commands}."""


class SolutionNotPrepared(SandboxError):
    """The solution scores {score} ({detail}), and has not all that its image has: {reason}."""


class StepNotPrepared(SandboxError):
    """The setup.sh of the step {step} failed: {output}"""


class ContextFull(Exception):
    """The conversation is longer than the model's context window."""


class BegunAnew(Exception):
    """The execution ends without a result: another begins once the provider answers, in a new sandbox."""


class ModelFailed(Exception):
    """The model gave no answer, for a reason of the machinery. `usage`: tokens that were paid for none."""

    def __init__(self, failure: Failure, usage: TokenUsage = NO_TOKENS) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.usage = usage


class ToolsRefused(ModelFailed):
    """The call was refused, perhaps for the tools that it had."""


class BudgetNotRecorded(Exception):
    """The scheduler did not record the use of a budget, so nothing more may be used."""


class BudgetLost(SandboxError):
    """Executions that were lost with their worker ({executions}) used up its {budget}. Retry the run."""
