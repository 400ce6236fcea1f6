"""Joins the parts of batches: making, showing and cancelling them, and writing their files at the end."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

from services.common.grpc.server import Registration
from services.scheduler.batches.cancel_batch import CancelBatch
from services.scheduler.batches.finalize_batch import FinalizeBatch, LeadBatches
from services.scheduler.batches.grpc_api import SERVICE_NAME, GrpcBatchApi
from services.scheduler.batches.grpc_results import GrpcBatchLines
from services.scheduler.batches.postgres import PostgresBatches
from services.scheduler.batches.show_batch import ShowBatch
from services.scheduler.batches.submit_batch import SubmitBatch
from services.scheduler.postgres import Connections
from services.scheduler.runs.wiring import RunParts
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads.stored_file import FileId
from services.scheduler.uploads.wiring import UploadParts


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchParts:
    apis: Mapping[str, Registration]
    leader: LeadBatches


def make_batches(
    settings: SchedulerSettings, connections: Connections, *, runs: RunParts, uploads: UploadParts
) -> BatchParts:
    storage, clock = uploads.storage, connections.clock
    batches = PostgresBatches(session=connections.postgres, runs=runs.store, storage=storage)
    read_batches = PostgresBatches(session=connections.reads, runs=runs.store, storage=storage)
    api = GrpcBatchApi(
        submit=SubmitBatch(
            batches=batches,
            files=uploads.files,
            submit_run=runs.submit,
            limits=runs.limits,
            controls=runs.controls,
            clock=clock,
        ),
        show_batch=ShowBatch(batches=read_batches, count_runs=runs.reads.count_runs),
        cancel=CancelBatch(batches=batches, runs=runs.change),
    )
    finalizing = FinalizeBatch(
        batches=batches,
        files=uploads.files,
        lines=GrpcBatchLines(channel=connections.results),
        objects=uploads.objects,
        clock=clock,
        seconds=settings.upload_timeout_seconds,
    )
    leader = LeadBatches(
        batches=batches,
        finalize_batch=finalizing,
        clock=clock,
        new_file_id=lambda: FileId(f"file-{uuid4().hex}"),
    )
    return BatchParts(apis={SERVICE_NAME: api.register}, leader=leader)
