"""Joins the parts of imports."""

from collections.abc import Mapping

from services.common.grpc.server import Registration
from services.scheduler.imports import grpc_api
from services.scheduler.imports.add_imported_run import AddImportedRun
from services.scheduler.imports.grpc_results import GrpcLoggedRecord
from services.scheduler.imports.logged_run import ReadLimits
from services.scheduler.imports.postgres import PostgresImports
from services.scheduler.imports.processes.log_checks import PROGRAM
from services.scheduler.imports.processes.spooled_parts import SpooledParts
from services.scheduler.planning.grpc_results import GrpcRunRecord
from services.scheduler.postgres import Connections
from services.scheduler.runs.wiring import RunParts
from services.scheduler.settings import SchedulerSettings
from services.scheduler.suites.wiring import SuiteParts
from services.scheduler.uploads.wiring import UploadParts


def make_imports(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    suites: SuiteParts,
    uploads: UploadParts,
    runs: RunParts,
) -> Mapping[str, Registration]:
    """The APIs by the names of their services."""
    channel, share = connections.results, settings.max_failed_share
    add = AddImportedRun(
        program=PROGRAM,
        new_parts=SpooledParts,
        limits=ReadLimits(
            sent_bytes=settings.max_dataset_bytes,
            read_bytes=settings.max_decompressed_dataset_bytes,
            samples=settings.max_dataset_rows,
        ),
        uploads=uploads.uploads,
        suites=suites.catalogue,
        record=GrpcRunRecord(channel=channel, max_failed_share=share),
        logged=GrpcLoggedRecord(channel=channel, max_failed_share=share),
        runs=PostgresImports(session=connections.postgres),
        clock=connections.clock,
    )
    api = grpc_api.GrpcImportApi(add=add, show_run=runs.reads.show_run)
    return {grpc_api.SERVICE_NAME: api.register}
