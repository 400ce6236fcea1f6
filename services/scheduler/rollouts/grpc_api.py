"""RolloutService: converts, calls a use case, converts."""

# ruff: noqa: N802, ARG002 - names and parameters are those of the generated service

from dataclasses import dataclass
from uuid import uuid4

import grpc

from proctor.v1 import rollout_pb2, rollout_service_pb2_grpc
from proctor.v1 import rollout_service_pb2 as messages
from proctor.values.rollout import AgentKind, RolloutAgent
from proctor.wire.convert import UnknownNumber
from proctor.wire.enums import member_of
from proctor.wire.values import PARAMS
from services.common.checked_fields import InvalidParameter
from services.common.grpc.server import RpcContext
from services.scheduler.requests import DEFAULT_USER, checked_request_id
from services.scheduler.rollouts.rollouts_order import RolloutsOrder
from services.scheduler.rollouts.submit_rollouts import SubmitRollouts
from services.scheduler.runs.reads.proto import snapshot_to_proto
from services.scheduler.runs.reads.show_run import ShowRun

SERVICE_NAME = messages.DESCRIPTOR.services_by_name["RolloutService"].full_name


def agent_from_proto(message: rollout_pb2.RolloutAgent) -> RolloutAgent:
    """Fields that are zero take their defaults."""
    kind = member_of(AgentKind, message.kind)
    if message.kind and kind is None:
        sentence = "agent.kind is unknown. Take one that this version of Proctor knows."
        raise InvalidParameter(field="agent.kind", sentence=sentence)
    usual = RolloutAgent()
    return RolloutAgent(
        kind or usual.kind,
        message.max_steps or usual.max_steps,
        message.max_tokens or usual.max_tokens,
        message.command_seconds or usual.command_seconds,
    )


def order_from_proto(request: messages.OrderRolloutsRequest) -> RolloutsOrder:
    try:
        params = PARAMS.from_proto(request.params)
    except UnknownNumber as error:
        raise InvalidParameter(field=f"params.{error.field}", sentence=f"{error}.") from error
    return RolloutsOrder(
        name=request.name,
        tasks=request.tasks,
        models=tuple(request.models),
        user=request.user or DEFAULT_USER,
        request_id=checked_request_id(request.request_id) or str(uuid4()),
        agent=agent_from_proto(request.agent),
        overrides_json=dict(request.overrides_json),
        rollouts=request.rollouts if request.HasField("rollouts") else 1,
        project_id=request.project_id,
        params=params,
        max_cost=request.max_cost if request.HasField("max_cost") else None,
    )


@dataclass(frozen=True, kw_only=True)
class GrpcRolloutApi(rollout_service_pb2_grpc.RolloutServiceServicer):
    submit: SubmitRollouts
    show: ShowRun

    def register(self, server: grpc.aio.Server) -> None:
        rollout_service_pb2_grpc.add_RolloutServiceServicer_to_server(self, server)

    async def OrderRollouts(
        self, request: messages.OrderRolloutsRequest, context: RpcContext
    ) -> messages.OrderRolloutsResponse:
        ordered = await self.submit.submit(order_from_proto(request))
        runs = [snapshot_to_proto(await self.show.show(run.run_id)) for run in ordered.runs]
        return messages.OrderRolloutsResponse(suite=ordered.suite, task_ids=ordered.task_ids, runs=runs)
