"""Joins the parts of uploads: data sets and files, and the object store that both use."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import NoReturn

from services.common.clock import Clock
from services.common.grpc.server import Registration
from services.common.objects.obstore_objects import ObstoreObjects
from services.scheduler.postgres import Connections
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads import grpc_api
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.add_file import AddFile
from services.scheduler.uploads.checking.check_batch_file import BatchLimits
from services.scheduler.uploads.checking.check_file import SizeLimits
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.delete_uploads import CollectUnreferencedObjects, DeleteDataset, DeleteFile
from services.scheduler.uploads.mappings.change_mapping import DeleteMapping, SaveMapping
from services.scheduler.uploads.mappings.postgres import PostgresMappings
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles, RefuseUsed
from services.scheduler.uploads.processes.checking import start_check
from services.scheduler.uploads.processes.upload_checks import PROGRAM
from services.scheduler.uploads.quotas import grpc_api as quotas_grpc_api
from services.scheduler.uploads.quotas.postgres import PostgresStorage
from services.scheduler.uploads.show_beginning import ShowBeginning
from services.scheduler.uploads.show_uploads import ShowDataset, ShowFile
from services.scheduler.uploads.storage.store_parts import LoadRows


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
    check_room: Callable[[], None],
) -> UploadParts:
    session, reads, clock = connections.postgres, connections.reads, connections.clock
    datasets = PostgresDatasets(session=session, refuse_used=refuse_used_dataset, storage=storage)
    files = PostgresFiles(session=session, refuse_used=refuse_used_file, storage=storage)
    mappings = PostgresMappings(session=session)
    objects = ObstoreObjects(url=settings.object_store)
    uploads = Uploads(limits=_upload_limits(settings), start_check=start_check, check_room=check_room)
    delete_file = DeleteFile(files=files, objects=objects, clock=clock)
    dataset_api = grpc_api.GrpcDatasetApi(
        add=_make_adding(settings, datasets, objects, uploads, storage=storage, clock=clock),
        show_dataset=ShowDataset(datasets=datasets.reading(reads), load_rows=LoadRows(objects=objects)),
        show_beginning=ShowBeginning(program=PROGRAM, objects=objects, uploads=uploads),
        delete=DeleteDataset(datasets=datasets, objects=objects, clock=clock),
        mappings=mappings.reading(reads),
        save_mapping=SaveMapping(mappings=mappings, clock=clock),
        delete_mapping=DeleteMapping(mappings=mappings, clock=clock),
    )
    file_api = grpc_api.GrpcFileApi(
        add=AddFile(
            program=PROGRAM,
            limits=_batch_limits(settings),
            files=files,
            objects=objects,
            clock=clock,
            uploads=uploads,
            storage=storage,
        ),
        show_file=ShowFile(files=files.reading(reads), objects=objects, clock=clock),
        delete=delete_file,
    )
    return UploadParts(
        datasets=datasets,
        files=files,
        objects=objects,
        storage=storage,
        uploads=uploads,
        apis=_apis(dataset_api, file_api, storage.reading(reads)),
        collect_objects=_make_collector(settings, connections, datasets, objects),
        delete_file=delete_file,
    )


def _make_adding(
    settings: SchedulerSettings,
    datasets: PostgresDatasets,
    objects: ObstoreObjects,
    uploads: Uploads,
    *,
    storage: PostgresStorage,
    clock: Clock,
) -> AddDataset:
    return AddDataset(
        program=PROGRAM,
        limits=_dataset_limits(settings),
        datasets=datasets,
        objects=objects,
        clock=clock,
        uploads=uploads,
        storage=storage,
    )


def _apis(
    datasets: grpc_api.GrpcDatasetApi, files: grpc_api.GrpcFileApi, storage: PostgresStorage
) -> Mapping[str, Registration]:
    return {
        grpc_api.DATASET_SERVICE: datasets.register,
        grpc_api.FILE_SERVICE: files.register,
        quotas_grpc_api.SERVICE_NAME: quotas_grpc_api.GrpcStorageApi(storage=storage).register,
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


def _dataset_limits(settings: SchedulerSettings) -> SizeLimits:
    return SizeLimits(
        uploaded_bytes=settings.max_dataset_bytes,
        decompressed_bytes=settings.max_decompressed_dataset_bytes,
        rows=settings.max_dataset_rows,
    )


def _batch_limits(settings: SchedulerSettings) -> BatchLimits:
    return BatchLimits(bytes=settings.max_batch_file_bytes, lines=settings.max_batch_lines)
