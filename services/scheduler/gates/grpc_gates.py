"""Gates that results decides, over gRPC: the verdict of a run against its base, in a sentence."""

import grpc

from proctor.v1 import comparison_pb2, comparison_service_pb2
from proctor.v1 import comparison_service_pb2_grpc as comparison_grpc
from proctor.values.comparison import GateVerdict
from services.common.grpc.errors import remote_error
from services.scheduler.gates.gated_run import GateDecision
from services.scheduler.runs.orders.run_gate import RunGate

# Longer than results may take for a comparison, so that its own refusal arrives.
_CALL_SECONDS = 330.0
# Of the tasks that got worse.
_NAMED_TASKS = 5


class GrpcGates:
    """A client of ComparisonService; failures are raised as `RemoteError`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._comparisons = comparison_grpc.ComparisonServiceStub(channel)

    async def decide(self, run_id: str, base_run_id: str, gate: RunGate) -> GateDecision:
        decided = await self._gate(run_id, base_run_id, gate.margin_points, gate.alpha)
        failed, dropped = comparison_pb2.GATE_VERDICT_FAIL, decided
        if decided.verdict != failed and gate.margin_points:
            # A drop within what is accepted; results keeps the differences of the first call.
            dropped = await self._gate(run_id, base_run_id, 0.0, gate.alpha)
        is_drop = dropped.verdict == failed
        return GateDecision(
            text=_sentence(decided, dropped if is_drop else None),
            verdict=GateVerdict.of_number(decided.verdict),
            base_run_id=base_run_id,
            is_drop=is_drop,
        )

    async def _gate(
        self, run_id: str, base_run_id: str, margin_points: float, alpha: float
    ) -> comparison_pb2.Gate:
        request = comparison_service_pb2.GateRunRequest(
            run_id=run_id, base_run_id=base_run_id, margin_points=margin_points, alpha=alpha
        )
        try:
            return (await self._comparisons.GateRun(request, timeout=_CALL_SECONDS)).gate
        except grpc.aio.AioRpcError as error:
            raise remote_error(error) from error


def _sentence(decided: comparison_pb2.Gate, dropped: comparison_pb2.Gate | None) -> str:
    points = f"{decided.margin_points:g} point{'' if decided.margin_points == 1 else 's'}"
    if decided.verdict == comparison_pb2.GATE_VERDICT_FAIL:
        return f"Worse than its base by more than {points}: {_worse_tasks(decided)}."
    if dropped is not None:
        return f"Significantly worse than its base: {_worse_tasks(dropped)}; a drop of {points} is accepted."
    if decided.verdict == comparison_pb2.GATE_VERDICT_PASS:
        return f"Not worse than its base by more than {points}."
    return f"Neither a drop of more than {points} nor its absence is shown: {_reason(decided)}"


def _worse_tasks(gate: comparison_pb2.Gate) -> str:
    worse = [each.difference for each in gate.tasks if each.verdict == comparison_pb2.GATE_VERDICT_FAIL]
    named = [
        f"{one.task or 'all tasks'} {one.second_mean:.4g} → {one.first_mean:.4g} ({one.metric})"
        for one in worse[:_NAMED_TASKS]
    ]
    more = len(worse) - len(named)
    return ", ".join(named) + (f", and {more} more" if more else "")


def _reason(gate: comparison_pb2.Gate) -> str:
    """The first one, with a full stop."""
    of_tasks = [f"{each.difference.task or 'all tasks'}: {each.reason}" for each in gate.tasks if each.reason]
    return f"{[*gate.reasons, *of_tasks, 'there is no task to compare'][0].rstrip('.')}."
