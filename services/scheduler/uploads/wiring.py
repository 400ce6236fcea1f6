"""Makes and joins the parts of the scheduler that keep what users upload: data sets and files."""

import sys

from services.common.clock import Clock
from services.common.postgres import PostgresSession
from services.scheduler.settings import SchedulerSettings
from services.scheduler.uploads.add_dataset import AddDataset
from services.scheduler.uploads.add_file import AddFile, CheckBatchFile
from services.scheduler.uploads.checking.check_file import CheckFile, LineRules, SizeLimits
from services.scheduler.uploads.checking.parquet_reader import read_parquet
from services.scheduler.uploads.checking.text_readers import read_csv, read_jsonl
from services.scheduler.uploads.concurrent_uploads import UploadLimits, Uploads
from services.scheduler.uploads.dataset import DatasetFormat
from services.scheduler.uploads.delete_uploads import CollectOrphanedObjects, DeleteDataset, DeleteFile
from services.scheduler.uploads.grpc_api import DatasetUseCases, FileUseCases
from services.scheduler.uploads.postgres import PostgresDatasets, PostgresFiles
from services.scheduler.uploads.show_uploads import ShowDataset, ShowFile
from services.scheduler.uploads.storage.obstore_objects import ObstoreObjects
from services.scheduler.uploads.storage.store_parts import LoadRows

DATASET_READERS = {
    DatasetFormat.JSONL: read_jsonl,
    DatasetFormat.CSV: read_csv,
    DatasetFormat.PARQUET: read_parquet,
}


class UploadParts:
    """Ports with their adapters, and the use cases over them."""

    def __init__(self, settings: SchedulerSettings, session: PostgresSession, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.datasets = PostgresDatasets(session)
        self.files = PostgresFiles(session)
        self.objects = ObstoreObjects(settings.object_store)
        self._uploads = Uploads(
            UploadLimits(settings.max_uploads, settings.max_uploads_per_user, settings.max_upload_seconds)
        )

    def dataset_use_cases(self) -> DatasetUseCases:
        settings = self._settings
        sizes = SizeLimits(settings.max_upload_bytes, settings.max_unpacked_bytes, settings.max_dataset_rows)
        checking = CheckFile(DATASET_READERS, self.objects, sizes)
        return DatasetUseCases(
            add=AddDataset(checking, self.datasets, self.objects, self._clock, self._uploads),
            show=ShowDataset(self.datasets, LoadRows(self.objects)),
            delete=DeleteDataset(self.datasets, self.objects, self._clock),
        )

    def file_use_cases(self) -> FileUseCases:
        most, rules = self._settings.max_batch_file_bytes, self._line_rules()
        # Its lines are counted by the rules: one too many is a fault, and the file is kept.
        sizes = SizeLimits(most, most, sys.maxsize)
        checking = CheckFile({DatasetFormat.JSONL: read_jsonl}, self.objects, sizes, rules)
        keeping = CheckBatchFile(checking, self.objects, most)
        return FileUseCases(
            add=AddFile(keeping, self.files, self.objects, self._clock, self._uploads),
            show=ShowFile(files=self.files, objects=self.objects, clock=self._clock),
            delete=self.file_deletion(),
        )

    def file_deletion(self) -> DeleteFile:
        return DeleteFile(self.files, self.objects, self._clock)

    def orphan_collector(self) -> CollectOrphanedObjects:
        return CollectOrphanedObjects(
            self.datasets, self.objects, self._clock, self._settings.max_upload_seconds
        )

    def _line_rules(self) -> LineRules:
        return LineRules(is_batch_only=True, most=self._settings.max_batch_lines)
