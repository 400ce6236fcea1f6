"""Joins the parts of uploads: data sets and files, and the object store that both use."""

import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import NoReturn

from services.common.grpc.server import Registration
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads import grpc_api
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.add_file import AddFile, CheckBatchFile
from services.scheduler.uploads.checking.check_file import CheckFile, LineRules, SizeLimits
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.checking.text_readers import read_csv, read_jsonl
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.delete_uploads import CollectUnreferencedObjects, DeleteDataset, DeleteFile
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles, RefuseUsed
from services.scheduler.uploads.processes.checking import start_check
from services.scheduler.uploads.quotas import grpc_api as quotas_grpc_api
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.show_uploads import ShowDataset, ShowFile
from services.scheduler.uploads.storage.obstore_objects import ObstoreObjects
from services.scheduler.uploads.storage.store_parts import LoadRows

DATASET_READERS = {
    DatasetFormat.JSONL: read_jsonl,
    DatasetFormat.CSV: read_csv,
    DatasetFormat.PARQUET: read_parquet,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadParts:
    datasets: PostgresDatasets
    files: PostgresFiles
    objects: ObstoreObjects
    storage: PostgresStorage
    uploads: Uploads
    apis: Mapping[str, Registration]
    collect_objects: CollectUnreferencedObjects
    delete_file: DeleteFile

    def leader_loops(self) -> Mapping[str, Coroutine[None, None, NoReturn]]:
        return {
            "collect unreferenced objects": self.collect_objects.lead(),
            "delete expired files": self.delete_file.lead(),
        }


def make_uploads(
    settings: SchedulerSettings,
    connections: Connections,
    *,
    refuse_used_dataset: RefuseUsed,
    refuse_used_file: RefuseUsed,
    storage: PostgresStorage,
) -> UploadParts:
    session, reads, clock = connections.postgres, connections.reads, connections.clock
    datasets = PostgresDatasets(session=session, refuse_used=refuse_used_dataset, storage=storage)
    files = PostgresFiles(session=session, refuse_used=refuse_used_file, storage=storage)
    objects = ObstoreObjects(url=settings.object_store)
    uploads = Uploads(limits=_upload_limits(settings), start_check=start_check)
    delete_file = DeleteFile(files=files, objects=objects, clock=clock)
    dataset_api = grpc_api.GrpcDatasetApi(
        add=AddDataset(
            check_file=_dataset_check(settings, objects),
            datasets=datasets,
            objects=objects,
            clock=clock,
            uploads=uploads,
            storage=storage,
        ),
        show_dataset=ShowDataset(datasets=datasets.reading(reads), load_rows=LoadRows(objects=objects)),
        delete=DeleteDataset(datasets=datasets, objects=objects, clock=clock),
    )
    file_api = grpc_api.GrpcFileApi(
        add=AddFile(
            check_file=_file_check(settings, objects),
            files=files,
            objects=objects,
            clock=clock,
            uploads=uploads,
            storage=storage,
        ),
        show_file=ShowFile(files=files.reading(reads), objects=objects, clock=clock),
        delete=delete_file,
    )
    storage_api = quotas_grpc_api.GrpcStorageApi(storage=storage.reading(reads))
    return UploadParts(
        datasets=datasets,
        files=files,
        objects=objects,
        storage=storage,
        uploads=uploads,
        apis=_apis(dataset_api, file_api, storage_api),
        collect_objects=_make_collector(settings, connections, datasets, objects),
        delete_file=delete_file,
    )


def _apis(
    datasets: grpc_api.GrpcDatasetApi, files: grpc_api.GrpcFileApi, storage: quotas_grpc_api.GrpcStorageApi
) -> Mapping[str, Registration]:
    return {
        grpc_api.DATASET_SERVICE: datasets.register,
        grpc_api.FILE_SERVICE: files.register,
        quotas_grpc_api.SERVICE_NAME: storage.register,
    }


def _make_collector(
    settings: SchedulerSettings,
    connections: Connections,
    datasets: PostgresDatasets,
    objects: ObstoreObjects,
) -> CollectUnreferencedObjects:
    return CollectUnreferencedObjects(
        datasets=datasets,
        objects=objects,
        clock=connections.clock,
        upload_seconds=settings.upload_timeout_seconds,
    )


def _upload_limits(settings: SchedulerSettings) -> UploadLimits:
    return UploadLimits(
        uploads=settings.max_uploads,
        per_user=settings.max_uploads_per_user,
        seconds=settings.upload_timeout_seconds,
    )


def _dataset_check(settings: SchedulerSettings, objects: ObstoreObjects) -> CheckFile:
    limits = SizeLimits(
        uploaded_bytes=settings.max_dataset_bytes,
        decompressed_bytes=settings.max_decompressed_dataset_bytes,
        rows=settings.max_dataset_rows,
    )
    return CheckFile(readers=DATASET_READERS, objects=objects, limits=limits)


def _file_check(settings: SchedulerSettings, objects: ObstoreObjects) -> CheckBatchFile:
    max_bytes = settings.max_batch_file_bytes
    # Its lines are counted by the rules: one too many is a fault, and the file is kept.
    limits = SizeLimits(uploaded_bytes=max_bytes, decompressed_bytes=max_bytes, rows=sys.maxsize)
    checking = CheckFile(
        readers={DatasetFormat.JSONL: read_jsonl},
        objects=objects,
        limits=limits,
        rules=LineRules(is_batch_only=True, maximum=settings.max_batch_lines),
    )
    return CheckBatchFile(check_file=checking, objects=objects, max_bytes=max_bytes)
