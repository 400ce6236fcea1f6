"""What results has decided of a gate, in a sentence."""

from proctor.v1 import comparison_pb2
from proctor.values.comparison import GateVerdict, points_text
from services.scheduler.gates.gated_run import GateDecision

# Of the tasks that got worse.
_NAMED_TASKS = 5


def decision_from_proto(decided: comparison_pb2.Gate, dropped: comparison_pb2.Gate) -> GateDecision:
    """`dropped`: the same gate where no drop is accepted; where that is not known, the gate itself."""
    is_drop = dropped.verdict == comparison_pb2.GATE_VERDICT_FAIL
    return GateDecision(
        text=_sentence(decided, dropped if is_drop else None),
        verdict=GateVerdict.of_number(decided.verdict),
        base_run_id=decided.runs[1].run_id,
        is_drop=is_drop,
    )


def _sentence(decided: comparison_pb2.Gate, dropped: comparison_pb2.Gate | None) -> str:
    points = points_text(decided.margin_points)
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
