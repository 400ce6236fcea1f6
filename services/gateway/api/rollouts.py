"""Rollouts: tasks with files and tests, which agents work on in sandboxes. Each becomes a job per model."""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, Field, JsonValue

from proctor.v1 import rollout_pb2, rollout_service_pb2
from proctor.values.names.suite_name import versioned_name
from proctor.values.plain import INT32_MAX
from proctor.values.providers.rules import MAX_ROLLOUTS
from proctor.values.rollout import (
    MAX_ARCHIVE_BYTES,
    MAX_COMMAND_SECONDS,
    MAX_MODELS,
    MAX_PARALLEL,
    MAX_RAN_NAMES,
    MAX_STEPS,
    MAX_TOKENS,
    MAX_VERSION_CHARACTERS,
    AgentKind,
    RolloutAgent,
    VerificationPlace,
)
from proctor.values.run import RunState
from proctor.wire.enums import number_of
from services.gateway.api.models import full_model
from services.gateway.api.runs.job import job_listed
from services.gateway.api.runs.requests import MaxCost, ModelFilter, Params, ProjectId, Rollouts
from services.gateway.api.runs.schemas import JobListed
from services.gateway.auth.identity import User
from services.gateway.auth.request_ids import RequestId
from services.gateway.backends.calls import SchedulerCalls
from services.gateway.http.parameters import (
    MAX_FIELDS,
    MAX_TASKS,
    Cursor,
    Keywords,
    ProjectFilter,
    RequestBody,
    Text,
)
from services.gateway.http.paths import ROLLOUTS
from services.gateway.http.presentation import json_text, present
from services.gateway.http.problem import problems
from services.gateway.http.project_names import ProjectName

router = APIRouter(prefix=ROLLOUTS, tags=["rollouts"])


# An alias, or a provider and a name; the scheduler refuses others.
ModelName = Annotated[Text, Keywords({"minLength": 1, "pattern": r"^[^/\s\x00]+(/[^\s\x00]+)?$"})]
_DEFAULT = RolloutAgent()
_EACH_ONCE: dict[str, JsonValue] = {"uniqueItems": True}


class AgentBudgets(RequestBody):
    kind: AgentKind = Field(default=AgentKind.SHELL, description="oracle and none ask no model")
    max_steps: int | None = Field(
        default=None,
        ge=1,
        le=MAX_STEPS,
        description=f"Answers of the model; {_DEFAULT.max_steps}, of mini and terminus more",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_TOKENS,
        description=f"Tokens of all steps, prompts included; {_DEFAULT.max_tokens:,}, of mini, terminus more",
    )
    command_seconds: float | None = Field(
        default=None,
        gt=0,
        le=MAX_COMMAND_SECONDS,
        description=f"Time of a command; {_DEFAULT.command_seconds:g}",
    )
    max_cost: float | None = Field(
        default=None,
        gt=0,
        description="Cost of the tokens of one rollout, in the currency of the price file; no limit",
    )
    template: Literal[
        "",
        "aider",
        "claude-code",
        "codex",
        "gemini",
        "goose",
        "mini-swe-agent",
        "opencode",
        "openhands",
        "qwen-code",
    ] = Field(
        default="",
        description="Program of an agent of kind command; the image of the tasks has it, or the worker",
    )
    version: str = Field(
        default="",
        max_length=MAX_VERSION_CHARACTERS,
        description="Version of the program that must be installed; any",
    )
    verification: VerificationPlace = Field(
        default=VerificationPlace.FRESH,
        description="same: the tests judge in the agent's sandbox, which is easier to cheat",
    )
    command: list[Text] = Field(
        default=[],
        max_length=1000,
        description="Instead of a template; {instruction}, {model}, {base_url} and {token} are replaced",
    )
    environment: dict[str, Text] = Field(
        default={}, max_length=MAX_FIELDS, description="Variables of the program"
    )

    def to_proto(self) -> rollout_pb2.RolloutAgent:
        return rollout_pb2.RolloutAgent(
            kind=number_of(self.kind),
            max_steps=self.max_steps or 0,
            max_tokens=self.max_tokens or 0,
            command_seconds=self.command_seconds or 0.0,
            max_cost=self.max_cost,
            template=self.template,
            command=self.command,
            environment=self.environment,
            version=self.version,
            verification=number_of(self.verification),
        )


ModelTasks = Annotated[
    dict[Text, Annotated[int, Field(ge=1, le=MAX_ROLLOUTS)]], Field(min_length=1, max_length=MAX_TASKS)
]


class SolvedTests(RequestBody):
    """Tests that ran on a solution, skipped ones left out."""

    count: int = Field(ge=0, le=INT32_MAX)
    names: list[Text] = Field(
        default=[],
        max_length=MAX_RAN_NAMES,
        description="Without parameters, as far as they are known; that of several tests as often",
    )
    failed: int = Field(default=0, ge=0, le=INT32_MAX, description="Of how many a failure was printed")
    reward_uses: int = Field(
        default=0,
        ge=0,
        le=INT32_MAX,
        description="How often files of the reward were opened, closed or made meanwhile; 0: not known",
    )
    other_results: int = Field(
        default=0, ge=0, le=INT32_MAX, description="How many results runners other than pytest printed"
    )


class RolloutsRequest(RequestBody):
    """Tasks × models × rollouts."""

    suite: str = Field(
        min_length=1,
        max_length=100,
        pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        examples=["mine"],
        description="The suite of the jobs: the tasks become a version of it",
    )
    tasks: Text = Field(
        default="",
        description=f"Task folders as .tar.gz, at most {MAX_ARCHIVE_BYTES >> 20} MiB compressed, in base64",
    )
    tasks_digest: Text = Field(
        default="", pattern="^([0-9a-f]{64})?$", description="Tasks that were uploaded, instead of tasks"
    )
    models: list[ModelName] = Field(
        min_length=1,
        max_length=MAX_MODELS,
        examples=[["vllm/starter"]],
        description="provider/name; a job for each",
        json_schema_extra=_EACH_ONCE,
    )
    rollouts: Rollouts = None
    model_tasks: dict[ModelName, ModelTasks] = Field(
        default={},
        max_length=MAX_MODELS,
        description="Models that work on some tasks only, or on some more often: rollouts by names of tasks",
    )
    agent: AgentBudgets = AgentBudgets()
    overrides: dict[Text, Annotated[dict[str, JsonValue], Field(max_length=MAX_FIELDS)]] = Field(
        default={},
        max_length=MAX_TASKS,
        description="Name of a task's folder → overrides in the form of overrides.json",
    )
    solved_tests: dict[Text, SolvedTests] = Field(
        default={},
        max_length=MAX_TASKS,
        description="Name of a task → tests that ran on its solution: a rollout with others is suspicious",
    )
    project_id: ProjectId = 0
    params: Params | None = None
    max_cost: MaxCost = None
    parallel: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PARALLEL,
        description="Rollouts at a time, over all models",
    )

    def to_proto(self, user: str, request_id: str) -> rollout_service_pb2.SubmitRolloutsRequest:
        return rollout_service_pb2.SubmitRolloutsRequest(
            suite=self.suite,
            tasks=_decoded(self.tasks),
            tasks_digest=self.tasks_digest,
            overrides_json={folder: json_text(values) for folder, values in self.overrides.items()},
            agent=self.agent.to_proto(),
            models=self.models,
            rollouts=self.rollouts,
            model_tasks={
                model: rollout_service_pb2.ModelTasks(rollouts=tasks)
                for model, tasks in self.model_tasks.items()
            },
            solved_tests={
                name: rollout_pb2.RanTests(
                    count=tests.count,
                    names=tests.names,
                    failed=tests.failed,
                    reward_uses=tests.reward_uses,
                    other_results=tests.other_results,
                )
                for name, tests in self.solved_tests.items()
            },
            project_id=self.project_id,
            params=self.params.to_proto() if self.params else None,
            max_cost=self.max_cost,
            parallel=self.parallel,
            user=user,
            request_id=request_id,
        )


def _decoded(text: str) -> bytes:
    """The archive. Text that is not base64 is passed on: the scheduler refuses it as no archive."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return text.encode()


class RolloutsOrdered(BaseModel):
    order_id: str
    suite: str = Field(description="name@version: the suite of the jobs")
    task_ids: list[str]
    jobs: list[JobListed] = Field(description="One per model, in the order of the request")


@router.post(
    "",
    status_code=201,
    responses=problems(400, 404, 409, 413, 422, 503),
    summary="Order rollouts: one job per model over the tasks",
)
async def order(
    scheduler: SchedulerCalls, user: User, body: RolloutsRequest, request_id: RequestId
) -> RolloutsOrdered:
    ordered = await scheduler.rollouts.SubmitRollouts(body.to_proto(user, request_id))
    return RolloutsOrdered(
        order_id=ordered.order_id,
        suite=ordered.suite,
        task_ids=list(ordered.task_ids),
        jobs=[job_listed(run) for run in ordered.runs],
    )


class AgentShown(BaseModel):
    kind: str
    max_steps: int
    max_tokens: int
    command_seconds: float
    max_cost: float | None = Field(default=None, description="Of one rollout; null without a limit")
    template: str = Field(default="", description="Program of an agent of kind command")
    command: list[str] = []
    version: str = Field(default="", description="Version of the program that must be installed")
    verification: str = Field(default="fresh", description="same: the tests judge in the agent's sandbox")


class RolloutsOrderShown(BaseModel):
    """An order: tasks × models × rollouts."""

    order_id: str
    suite: str = Field(description="name@version: the suite of the jobs")
    user: str
    project_id: int
    project_name: ProjectName
    agent: AgentShown
    rollouts: int = Field(description="Rollouts at each task; the most where models or tasks differ")
    task_ids: list[str] = Field(description="The index of a task is the doc_id of its outcomes")
    models: list[str]
    created_at: datetime
    jobs: list[JobListed] = Field(description="Those that are not deleted, in the order of the models")


class RolloutsOrderPage(BaseModel):
    results: list[RolloutsOrderShown]
    total: int = Field(description="Orders over all pages; 1001 where there are more than 1,000")
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class OrdersParameters:
    """Filters and page of a list of orders."""

    suite: Annotated[
        Text, Query(max_length=128, description='The suite of the jobs, "mine" or a version of it, "mine@2"')
    ] = ""
    model_name: ModelFilter = ""
    project_id: ProjectFilter = None
    status: Annotated[RunState | None, Query(description="State of at least one job")] = None
    limit: Annotated[int, Query(ge=1, le=100)] = 20
    cursor: Cursor = ""

    def to_proto(self) -> rollout_service_pb2.ListRolloutsOrdersRequest:
        return rollout_service_pb2.ListRolloutsOrdersRequest(
            page_size=self.limit,
            page_token=self.cursor,
            suite=self.suite,
            model=self.model_name,
            project_id=self.project_id,
            state=number_of(self.status),
        )


@router.get("", responses=problems(400, 404, 422, 503), summary="List orders of rollouts, newest first")
async def list_orders(
    scheduler: SchedulerCalls, query: Annotated[OrdersParameters, Depends()]
) -> RolloutsOrderPage:
    request = query.to_proto()
    request.model = await full_model(scheduler, query.model_name)
    page = await scheduler.rollouts.ListRolloutsOrders(request)
    return RolloutsOrderPage(
        results=[rollouts_order_shown(order) for order in page.orders],
        total=page.total,
        next_cursor=page.next_page_token or None,
    )


@router.get("/{order_id}", responses=problems(404, 503), summary="An order of rollouts with its jobs")
async def show_order(
    scheduler: SchedulerCalls, order_id: Annotated[Text, Path(description="UUID", max_length=64)]
) -> RolloutsOrderShown:
    request = rollout_service_pb2.GetRolloutsOrderRequest(order_id=order_id)
    return rollouts_order_shown((await scheduler.rollouts.GetRolloutsOrder(request)).order)


def rollouts_order_shown(order: rollout_service_pb2.RolloutsOrder) -> RolloutsOrderShown:
    return present(
        RolloutsOrderShown,
        order,
        suite=versioned_name(order.suite, order.suite_version),
        jobs=[job_listed(run) for run in order.runs],
    )
