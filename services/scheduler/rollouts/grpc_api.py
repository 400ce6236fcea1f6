"""RolloutService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from collections.abc import AsyncIterable
from dataclasses import dataclass
from uuid import UUID, uuid4

import grpc

from proctor.v1 import rollout_pb2, rollout_service_pb2
from proctor.v1 import rollout_service_pb2_grpc as rollout_grpc
from proctor.values.agents.built_in import built_in
from proctor.values.names.suite_name import split_name
from proctor.values.names.user import LOCAL_USER
from proctor.values.rollout import AgentKind, RolloutAgent, VerificationPlace
from proctor.values.run import RunId, RunState
from proctor.wire.convert import Codec
from proctor.wire.enums import member_of
from proctor.wire.errors import UnknownNumber
from proctor.wire.values import PARAMS, RAN_TESTS
from services.common.checked_fields import checked_text
from services.common.errors import InvalidPageToken, InvalidParameter
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.page_tokens import list_token, read_list_token
from services.common.requests.request_fields import check_stores, checked_page_size, checked_request_id
from services.scheduler.rollouts.rollouts_order import (
    OrderCursor,
    OrderFilter,
    RolloutsOrder,
    RolloutsOrderNotFound,
    RolloutsOrderOfRunNotFound,
)
from services.scheduler.rollouts.rollouts_submission import RolloutsSubmission
from services.scheduler.rollouts.show_orders import RolloutsOrderView, ShowOrders
from services.scheduler.rollouts.submit_rollouts import ARCHIVE, SubmitRollouts
from services.scheduler.runs.reads.proto import brief_to_proto, snapshot_to_proto
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.uploads.proto import open_upload
from services.scheduler.uploads.task_sets.add_task_set import AddTaskSet
from services.scheduler.uploads.task_sets.task_set import TasksHeader

SERVICE_NAME = rollout_service_pb2.DESCRIPTOR.services_by_name["RolloutService"].full_name
# Each has up to 20 runs.
MAX_PAGE_SIZE = 100
# The name of the list in its page tokens.
_ORDERS = "rollouts"
_ORDER = Codec(RolloutsOrder, rollout_service_pb2.RolloutsOrder, unpaired={"run_ids", "runs"})


def agent_from_proto(message: rollout_pb2.RolloutAgent) -> RolloutAgent:
    """Fields that are zero take their defaults."""
    kind = member_of(AgentKind, message.kind)
    if message.kind and kind is None:
        sentence = "agent.kind is unknown. Take one that this version of Proctor knows."
        raise InvalidParameter(field="agent.kind", sentence=sentence)
    verification = member_of(VerificationPlace, message.verification)
    if message.verification and verification is None:
        sentence = "agent.verification is unknown. Take fresh or same."
        raise InvalidParameter(field="agent.verification", sentence=sentence)
    default = RolloutAgent(kind or RolloutAgent().kind)
    budgets = built_in(default.kind)
    return RolloutAgent(
        default.kind,
        message.max_steps or budgets.max_steps,
        message.max_tokens or budgets.max_tokens,
        message.command_seconds or default.command_seconds,
        message.max_cost if message.HasField("max_cost") else None,
        message.template,
        tuple(message.command),
        dict(message.environment),
        message.version,
        verification or default.verification,
    )


def submission_from_proto(request: rollout_service_pb2.SubmitRolloutsRequest) -> RolloutsSubmission:
    try:
        params = PARAMS.from_proto(request.params)
    except UnknownNumber as error:
        raise InvalidParameter(field=f"params.{error.field}", sentence=f"{error}.") from error
    return RolloutsSubmission(
        suite=request.suite,
        tasks=request.tasks,
        tasks_digest=request.tasks_digest,
        models=tuple(request.models),
        user=request.user or LOCAL_USER,
        request_id=checked_request_id(request.request_id) or str(uuid4()),
        agent=agent_from_proto(request.agent),
        overrides_json=dict(request.overrides_json),
        rollouts=request.rollouts if request.HasField("rollouts") else 1,
        project_id=request.project_id,
        params=params,
        max_cost=request.max_cost if request.HasField("max_cost") else None,
        parallel=request.parallel if request.HasField("parallel") else None,
        parallel_group=request.parallel_group,
        solved_tests={name: RAN_TESTS.from_proto(ran) for name, ran in request.solved_tests.items()},
        model_tasks={model: dict(tasks.rollouts) for model, tasks in request.model_tasks.items()},
    )


@dataclass(frozen=True, kw_only=True)
class GrpcRolloutApi(rollout_grpc.RolloutServiceServicer):
    add_tasks: AddTaskSet
    submit: SubmitRollouts
    show_run: ShowRun
    orders: ShowOrders

    def register(self, server: grpc.aio.Server) -> None:
        rollout_grpc.add_RolloutServiceServicer_to_server(self, server)

    async def UploadTasks(
        self, request_iterator: AsyncIterable[rollout_service_pb2.UploadTasksRequest], context: RpcContext
    ) -> rollout_service_pb2.UploadTasksResponse:
        first, contents = await open_upload(request_iterator)
        header = TasksHeader(
            name=first.header.name or ARCHIVE,
            user=first.header.user or LOCAL_USER,
            overrides_json=dict(first.header.overrides_json),
        )
        tasks = await self.add_tasks.add(header, contents)
        return rollout_service_pb2.UploadTasksResponse(
            tasks_digest=tasks.digest, task_ids=tasks.task_ids, stored_bytes=tasks.size_bytes
        )

    async def SubmitRollouts(
        self, request: rollout_service_pb2.SubmitRolloutsRequest, context: RpcContext
    ) -> rollout_service_pb2.SubmitRolloutsResponse:
        check_stores(caller_of(context.invocation_metadata()), request.project_id)
        ordered = await self.submit.submit(submission_from_proto(request))
        runs = [snapshot_to_proto(await self.show_run.show(run.run_id)) for run in ordered.runs]
        return rollout_service_pb2.SubmitRolloutsResponse(
            suite=ordered.suite, task_ids=ordered.task_ids, runs=runs, order_id=ordered.order_id
        )

    async def GetRolloutsOrder(
        self, request: rollout_service_pb2.GetRolloutsOrderRequest, context: RpcContext
    ) -> rollout_service_pb2.GetRolloutsOrderResponse:
        return rollout_service_pb2.GetRolloutsOrderResponse(order=order_to_proto(await self._order(request)))

    async def ListRolloutsOrders(
        self, request: rollout_service_pb2.ListRolloutsOrdersRequest, context: RpcContext
    ) -> rollout_service_pb2.ListRolloutsOrdersResponse:
        size = checked_page_size(request.page_size, maximum=MAX_PAGE_SIZE)
        page = await self.orders.list_page(_filter(request), size, _cursor(request.page_token))
        is_last = len(page.orders) < size
        return rollout_service_pb2.ListRolloutsOrdersResponse(
            orders=[order_to_proto(view) for view in page.orders],
            next_page_token="" if is_last else _token_behind(page.orders[-1].order, page.total),
            total=page.total,
        )

    async def _order(self, request: rollout_service_pb2.GetRolloutsOrderRequest) -> RolloutsOrderView:
        if not request.run_id:
            return await self.orders.show(_order_id(request.order_id))
        if request.order_id:
            sentence = "order_id must be empty where run_id is given."
            raise InvalidParameter(field="order_id", sentence=sentence)
        return await self.orders.show_of_run(_run_id(request.run_id))


def order_to_proto(view: RolloutsOrderView) -> rollout_service_pb2.RolloutsOrder:
    message = _ORDER.to_proto(view.order)
    message.runs.extend(brief_to_proto(snapshot) for snapshot in view.runs)
    return message


def _order_id(text: str) -> str:
    """Raises RolloutsOrderNotFound for a text that is not a UUID."""
    try:
        return str(UUID(text))
    except ValueError as error:
        raise RolloutsOrderNotFound(order_id=text) from error


def _run_id(text: str) -> RunId:
    """Raises RolloutsOrderOfRunNotFound for a text that is not a UUID."""
    try:
        return RunId(str(UUID(text)))
    except ValueError as error:
        raise RolloutsOrderOfRunNotFound(run_id=text) from error


def _filter(request: rollout_service_pb2.ListRolloutsOrdersRequest) -> OrderFilter:
    suite, version = split_name(checked_text("suite", request.suite))
    if version == -1:
        sentence = f'suite is "{request.suite}", but its version must be a number, as in "mine@2".'
        raise InvalidParameter(field="suite", sentence=sentence)
    return OrderFilter(
        suite=suite,
        suite_version=version,
        model=checked_text("model", request.model),
        project_id=request.project_id if request.HasField("project_id") else None,
        state=member_of(RunState, request.state),
    )


def _token_behind(order: RolloutsOrder, total: int) -> str:
    return list_token(_ORDERS, order.created_at, order.order_id, total)


def _cursor(token: str) -> OrderCursor | None:
    """None for the first page."""
    if not token:
        return None
    created_at, order_id, total = read_list_token(_ORDERS, token)
    try:
        return OrderCursor(created_at, str(UUID(order_id)), total)
    except ValueError as error:
        raise InvalidPageToken(page_token=token) from error
