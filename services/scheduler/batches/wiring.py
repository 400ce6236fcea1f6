"""Makes the use cases of batches, and what the leader does for them."""

from dataclasses import dataclass
from uuid import uuid4

from services.common.clock import Clock
from services.scheduler.batches.finish_batch import FinishBatch, LeadBatches
from services.scheduler.batches.grpc_api import BatchUseCases
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.show_batch import CancelBatch, ShowBatch
from services.scheduler.batches.submit_batch import SubmitBatch
from services.scheduler.runs.lifecycle.change_state import CancelRun
from services.scheduler.runs.lifecycle.ports import RunControls
from services.scheduler.runs.lifecycle.submit_run import SubmitRun
from services.scheduler.runs.limits.queue_limits import LimitStore
from services.scheduler.runs.reads.show_run import ShowRun
from services.scheduler.uploads.stored_file import FileId
from services.scheduler.uploads.wiring import UploadParts


@dataclass(frozen=True, kw_only=True)
class BatchParts:
    """`finish_seconds` limits one attempt to write the files of a batch."""

    batches: PostgresBatches
    lines: GrpcBatchLines
    uploads: UploadParts
    limits: LimitStore
    controls: RunControls
    clock: Clock
    finish_seconds: float

    def use_cases(self, *, submit: SubmitRun, show: ShowRun, cancel: CancelRun) -> BatchUseCases:
        return BatchUseCases(
            submit=SubmitBatch(
                batches=self.batches,
                files=self.uploads.files,
                submitting=submit,
                limits=self.limits,
                controls=self.controls,
                clock=self.clock,
            ),
            show=ShowBatch(batches=self.batches, runs=show),
            cancel=CancelBatch(batches=self.batches, cancelling=cancel),
        )

    def leader(self) -> LeadBatches:
        finishing = FinishBatch(
            batches=self.batches,
            files=self.uploads.files,
            lines=self.lines,
            objects=self.uploads.objects,
            clock=self.clock,
            seconds=self.finish_seconds,
        )
        return LeadBatches(
            batches=self.batches,
            finishing=finishing,
            clock=self.clock,
            new_file_id=lambda: FileId(f"file-{uuid4().hex}"),
        )
