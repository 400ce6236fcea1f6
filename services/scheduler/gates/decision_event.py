"""What is told of the decision of a gate."""

from collections.abc import Mapping
from datetime import datetime

from proctor.values.comparison import GateVerdict
from proctor.values.names.notices import NoticeEvent
from services.scheduler.gates.gated_run import GateDecision, GatedRun
from services.scheduler.notices.notice import Event


def decision_event(
    gated: GatedRun, decision: GateDecision, at: datetime, facts: Mapping[str, str] | None = None
) -> Event | None:
    """None where there is nothing to tell. Who wants drops and failed gates hears of one once.

    A gate with the same runs and margin is one event, whether an order named it or a caller asked for it.
    """
    has_failed = decision.verdict is GateVerdict.FAIL
    if not (has_failed or decision.is_drop):
        return None
    what = "gate" if has_failed else "drop"
    failed = (NoticeEvent.GATE_FAILED,) if has_failed else ()
    return Event(
        kinds=(*failed, NoticeEvent.DROP),
        key=f"{what} {gated.run_id} {decision.base_run_id} {gated.gate.margin_points:g}",
        user=gated.user,
        project_id=gated.project_id,
        text=f"Run {gated.name} ({gated.model}): {decision.text}",
        at=at,
        facts={
            **(facts or {}),
            "run_id": gated.run_id,
            "base_run_id": decision.base_run_id,
            "name": gated.name,
            "user": gated.user,
            "model": gated.model,
            "verdict": decision.verdict or "",
        },
    )
