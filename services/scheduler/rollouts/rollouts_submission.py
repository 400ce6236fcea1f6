"""The submission of an order of rollouts, and what comes of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid5

from proctor.values.agents.templates import TEMPLATES
from proctor.values.generation import GenerationParams
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.rollout import (
    MAX_ARCHIVE_BYTES,
    MAX_COMMAND_SECONDS,
    MAX_MODELS,
    MAX_PARALLEL,
    MAX_STEPS,
    MAX_TOKENS,
    MAX_VERSION_CHARACTERS,
    AgentKind,
    RanTests,
    RolloutAgent,
)
from services.common.errors import InvalidParameter
from services.scheduler.rollouts.tasks.errors import TaskError
from services.scheduler.runs.lifecycle.run import Run

MAX_GROUP_CHARACTERS = 100
MAX_COMMAND_CHARACTERS = 20_000


class TooManyBytes(TaskError):
    """The tasks have {bytes} bytes, over the {limit} of an order. Upload them, and order by tasks_digest."""


@dataclass(frozen=True, slots=True)
class RolloutsSubmission:
    """`tasks` are task folders as .tar.gz; `overrides_json` is by their names. `request_id` is a UUID.

    Or `tasks_digest` names tasks that were uploaded. `parallel` bounds the rollouts at a time, over all
    orders of the user with the same `parallel_group`; an empty one means this order only. `solved_tests` ran
    on the solutions of tasks, by their names. `model_tasks` are rollouts by the names of tasks, for models
    that work on some of them only, or on some more often.
    """

    suite: str
    models: tuple[str, ...]
    user: str
    request_id: str
    tasks: bytes = b""
    tasks_digest: str = ""
    agent: RolloutAgent = field(default_factory=RolloutAgent)
    overrides_json: Mapping[str, str] = field(default_factory=dict)
    rollouts: int = 1
    project_id: int = 0
    params: GenerationParams = field(default_factory=GenerationParams)
    max_cost: float | None = None
    parallel: int | None = None
    parallel_group: str = ""
    solved_tests: Mapping[str, RanTests] = field(default_factory=dict)
    model_tasks: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def parallel_group_of_user(self) -> str:
        """Groups of two users never share a bound."""
        return f"{self.user}/{self.parallel_group or self.request_id}"

    def id_for(self, model: str) -> str:
        """The id of the run of a model, and of the call that submits it: the same for a repeated request."""
        return str(uuid5(UUID(self.request_id), model))


@dataclass(frozen=True, slots=True)
class OrderedRollouts:
    """`suite` is name@version."""

    order_id: str
    suite: str
    task_ids: tuple[str, ...]
    runs: tuple[Run, ...]


def check_submission(submission: RolloutsSubmission) -> None:
    """Raises InvalidParameter. What a run checks itself is left to it."""
    if not submission.models:
        raise _invalid("models", "models is empty. Name at least one, as provider/name.")
    if len(submission.models) > MAX_MODELS:
        raise _invalid(
            "models", f"models has {len(submission.models)} names, but may have at most {MAX_MODELS}."
        )
    if len(set(submission.models)) < len(submission.models):
        raise _invalid("models", "models names a model twice. Order more rollouts of it instead.")
    _check_tasks(submission)
    _check_model_tasks(submission)
    if submission.parallel is not None and not 1 <= submission.parallel <= MAX_PARALLEL:
        raise _invalid("parallel", f"parallel must be from 1 to {MAX_PARALLEL:,}.")
    if len(submission.parallel_group) > MAX_GROUP_CHARACTERS:
        raise _invalid(
            "parallel_group", f"parallel_group may have at most {MAX_GROUP_CHARACTERS} characters."
        )
    agent = submission.agent
    if not 1 <= agent.max_steps <= MAX_STEPS:
        raise _invalid("agent.max_steps", f"agent.max_steps must be from 1 to {MAX_STEPS}.")
    if not 1 <= agent.max_tokens <= MAX_TOKENS:
        raise _invalid("agent.max_tokens", f"agent.max_tokens must be from 1 to {MAX_TOKENS}.")
    if agent.max_cost is not None and not (agent.max_cost > 0 and math.isfinite(agent.max_cost)):
        raise _invalid("agent.max_cost", "agent.max_cost must be above 0. Leave it out for no limit.")
    _check_program(agent)
    if not 0 < agent.command_seconds <= MAX_COMMAND_SECONDS:
        sentence = f"agent.command_seconds must be above 0 and at most {MAX_COMMAND_SECONDS:g}."
        raise _invalid("agent.command_seconds", sentence)


def _check_program(agent: RolloutAgent) -> None:
    is_program = agent.kind is AgentKind.COMMAND
    if is_program and bool(agent.template) == bool(agent.command):
        raise _invalid("agent.command", "agent.template and agent.command: give one of them.")
    if not is_program and (agent.template or agent.command or agent.environment or agent.version):
        named = "agent.template, agent.command, agent.environment and agent.version"
        raise _invalid("agent.kind", f"{named} belong to an agent of kind command.")
    if len(agent.version) > MAX_VERSION_CHARACTERS:
        sentence = f"agent.version may have at most {MAX_VERSION_CHARACTERS} characters."
        raise _invalid("agent.version", sentence)
    if agent.version and not agent.template:
        raise _invalid("agent.version", "agent.version is that of a program by agent.template.")
    if agent.template and agent.template not in TEMPLATES:
        sentence = f"agent.template is unknown. There are: {', '.join(TEMPLATES)}."
        raise _invalid("agent.template", sentence)
    size = sum(map(len, (*agent.command, *agent.environment, *agent.environment.values())))
    if size > MAX_COMMAND_CHARACTERS:
        limit = f"over the {MAX_COMMAND_CHARACTERS:,}"
        sentence = f"agent.command and agent.environment have {size:,} characters, {limit}."
        raise _invalid("agent.command", sentence)


def _check_model_tasks(submission: RolloutsSubmission) -> None:
    for model, rollouts in submission.model_tasks.items():
        if model not in submission.models:
            raise _invalid("model_tasks", f"model_tasks names {model}, which models does not.")
        if not rollouts:
            raise _invalid("model_tasks", f"model_tasks names no task of {model}. Leave the model out.")
        if not all(1 <= each <= MAX_ROLLOUTS for each in rollouts.values()):
            raise _invalid("model_tasks", f"model_tasks: rollouts must be from 1 to {MAX_ROLLOUTS}.")


def _check_tasks(submission: RolloutsSubmission) -> None:
    if bool(submission.tasks) == bool(submission.tasks_digest):
        raise _invalid("tasks", "tasks and tasks_digest: give one of them.")
    if submission.tasks_digest and submission.overrides_json:
        sentence = "overrides_json belongs to the upload of the tasks, where they are named by a digest."
        raise _invalid("overrides_json", sentence)
    if (size := len(submission.tasks)) > MAX_ARCHIVE_BYTES:
        raise TooManyBytes(bytes=size, limit=MAX_ARCHIVE_BYTES)


def _invalid(field_name: str, sentence: str) -> InvalidParameter:
    return InvalidParameter(field=field_name, sentence=sentence)
