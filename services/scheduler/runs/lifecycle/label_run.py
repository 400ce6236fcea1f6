"""Labels a run: its owner changes the name, the tags or the note in any state."""

from dataclasses import dataclass

from proctor.values.names.user import Caller
from proctor.values.run import RunId
from services.common.clock import Clock
from services.common.requests.request_fields import check_owner
from services.scheduler.audit.audit_record import Author
from services.scheduler.runs.lifecycle.ports import RunStore
from services.scheduler.runs.lifecycle.run_labels import LabelChange


@dataclass(frozen=True, slots=True)
class LabelRun:
    runs: RunStore
    clock: Clock

    async def label(self, run_id: RunId, change: LabelChange, caller: Caller) -> None:
        """Raises `RunNotFound`, `BelongsToAnother` and `InvalidParameter`."""
        run = await self.runs.get(run_id)
        check_owner(caller, run.user, f"Run {run_id}", run.order.project_id)
        await self.runs.label(run_id, change, Author(caller.name, self.clock.now()))
