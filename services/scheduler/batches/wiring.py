"""Makes and joins the parts of the scheduler that batches need beside those of runs and files."""

from dataclasses import dataclass
from uuid import uuid4

from services.common.clock import Clock
from services.scheduler.batches.finish_batch import FinishBatch
from services.scheduler.batches.grpc_api import BatchUseCases
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.lead_batches import LeadBatches
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.show_batch import CancelBatch, ShowBatch
from services.scheduler.batches.submit_batch import SubmitBatch
from services.scheduler.files.stored_file import FileId
from services.scheduler.files.wiring import UploadParts
from services.scheduler.grpc_api import SchedulerUseCases
from services.scheduler.runs.lifecycle.ports import RunControls
from services.scheduler.runs.limits.ports import LimitStore
from services.scheduler.settings import SchedulerSettings


@dataclass(frozen=True)
class BatchParts:
    """Ports with their adapters, and the use cases over them."""

    batches: PostgresBatches
    lines: GrpcBatchLines
    stored: UploadParts
    limits: LimitStore
    controls: RunControls
    clock: Clock

    def use_cases(self, runs: SchedulerUseCases) -> BatchUseCases:
        return BatchUseCases(
            submit=SubmitBatch(
                self.batches,
                self.stored.files,
                runs.submit,
                self.limits,
                self.controls,
                self.clock,
            ),
            show=ShowBatch(self.batches, runs.show),
            cancel=CancelBatch(self.batches, runs.cancel),
        )

    def leading(self, settings: SchedulerSettings) -> LeadBatches:
        finishing = FinishBatch(
            self.batches,
            self.stored.files,
            self.lines,
            self.stored.objects,
            self.clock,
            settings.max_upload_seconds,
        )
        return LeadBatches(self.batches, finishing, self.clock, _new_file_id)


def _new_file_id() -> FileId:
    return FileId(f"file-{uuid4().hex}")
