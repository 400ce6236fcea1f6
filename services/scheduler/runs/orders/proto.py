"""Orders as messages: what is unset in an order stays unset, or has its default."""

from dataclasses import replace

from proctor.v1 import run_pb2
from proctor.v1 import schedule_service_pb2 as schedule_pb2
from proctor.values.priority import default_priority
from proctor.values.scoring import Reasoning, Truncation
from proctor.wire.convert import Codec
from proctor.wire.enums import number_of
from proctor.wire.errors import UnknownNumber
from services.common.checked_fields import checked_id
from services.common.errors import InvalidParameter
from services.scheduler.runs.orders.run_gate import RunGate
from services.scheduler.runs.orders.run_order import RunOrder

# Orders of rollouts set the first two fields. The third one is of resolved orders, the last one of others.
ORDER = Codec(
    RunOrder,
    run_pb2.RunOrder,
    unpaired={"parallel_group", "parallel", "has_judges_of_suite", "takes_repeats"},
)


def _is_background(order: run_pb2.RunOrder) -> bool:
    return bool(order.dataset_id) or order.HasField("judge")


def gate_from_proto(gate: run_pb2.RunGate | schedule_pb2.ScheduleGate) -> RunGate:
    """Raises `InvalidParameter`, also for a run without a base."""
    given = {name: getattr(gate, name) for name in ("margin_points", "alpha") if gate.HasField(name)}
    is_of_earlier = isinstance(gate, schedule_pb2.ScheduleGate) and not gate.base_run_id
    base = "" if is_of_earlier else checked_id("gate.base_run_id", gate.base_run_id)
    return RunGate(base_run_id=base, **given)


def order_from_proto(message: run_pb2.RunOrder) -> RunOrder:
    order = run_pb2.RunOrder()
    order.CopyFrom(message)
    order.priority = order.priority or number_of(default_priority(is_background=_is_background(order)))
    order.truncation = order.truncation or number_of(Truncation.NONE)
    order.reasoning = order.reasoning or number_of(Reasoning.SEPARATE)
    takes_repeats = not order.HasField("rollouts")
    if takes_repeats:
        order.rollouts = 1
    # Submissions of rollouts and imports set them.
    del order.row_rollouts[:]
    order.imported_from = ""
    order.ClearField("agent_kind")
    if order.HasField("until_decided"):
        for name in ("against_run_id", "is_base", "seed"):
            order.until_decided.ClearField(name)
    try:
        read = ORDER.from_proto(order)
    except UnknownNumber as error:
        sentence = f"{error}. Take one that this version of Proctor knows."
        raise InvalidParameter(field=f"order.{error.field}", sentence=sentence) from error
    tasks, line_models = dict.fromkeys(read.tasks), dict.fromkeys(read.line_models)
    return replace(read, tasks=tuple(tasks), line_models=tuple(line_models), takes_repeats=takes_repeats)
