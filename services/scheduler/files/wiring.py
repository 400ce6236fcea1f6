"""Makes and joins the parts of the scheduler that keep what users upload: data sets and files."""

import sys

from services.common.clock import Clock
from services.scheduler.datasets.add_dataset import AddDataset
from services.scheduler.datasets.check_file import CheckFile, LineRules, SizeLimits
from services.scheduler.datasets.checking.parquet_reader import read_parquet
from services.scheduler.datasets.checking.text_readers import read_csv, read_jsonl
from services.scheduler.datasets.dataset import DatasetFormat
from services.scheduler.datasets.delete_dataset import DeleteDataset
from services.scheduler.datasets.delete_lost_objects import DeleteLostObjects
from services.scheduler.datasets.grpc_api import DatasetUseCases
from services.scheduler.datasets.load_rows import LoadRows
from services.scheduler.datasets.obstore_objects import ObstoreObjects
from services.scheduler.datasets.postgres_datasets import PostgresDatasets
from services.scheduler.datasets.show_dataset import ShowDataset
from services.scheduler.datasets.uploads import UploadLimits, Uploads
from services.scheduler.files.add_file import AddFile
from services.scheduler.files.check_batch_file import CheckBatchFile
from services.scheduler.files.delete_file import DeleteFile
from services.scheduler.files.grpc_api import FileUseCases
from services.scheduler.files.postgres_files import PostgresFiles
from services.scheduler.files.show_file import ShowFile
from services.scheduler.postgres_sessions import Sessions
from services.scheduler.settings import SchedulerSettings

DATASET_READERS = {
    DatasetFormat.JSONL: read_jsonl,
    DatasetFormat.CSV: read_csv,
    DatasetFormat.PARQUET: read_parquet,
}


class UploadParts:
    """Ports with their adapters, and the use cases over them."""

    def __init__(self, settings: SchedulerSettings, sessions: Sessions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.datasets = PostgresDatasets(sessions)
        self.files = PostgresFiles(sessions)
        self.objects = ObstoreObjects(settings.object_store)
        self._uploads = Uploads(UploadLimits(settings.max_uploads, settings.max_upload_seconds))

    def dataset_use_cases(self) -> DatasetUseCases:
        settings = self._settings
        sizes = SizeLimits(settings.max_upload_bytes, settings.max_unpacked_bytes, settings.max_dataset_rows)
        checking = CheckFile(DATASET_READERS, self.objects, sizes)
        return DatasetUseCases(
            add=AddDataset(checking, self.datasets, self.objects, self._clock, self._uploads),
            show=ShowDataset(self.datasets, LoadRows(self.objects)),
            delete=DeleteDataset(self.datasets, self.objects),
        )

    def file_use_cases(self) -> FileUseCases:
        most, rules = self._settings.max_batch_file_bytes, self._line_rules()
        # Its lines are counted by the rules: one too many is a fault, and the file is kept.
        sizes = SizeLimits(most, most, sys.maxsize)
        checking = CheckFile({DatasetFormat.JSONL: read_jsonl}, self.objects, sizes, rules)
        keeping = CheckBatchFile(checking, self.objects, most)
        return FileUseCases(
            add=AddFile(keeping, self.files, self.objects, self._clock, self._uploads),
            show=ShowFile(self.files, self.objects),
            delete=self.file_deletion(),
        )

    def file_deletion(self) -> DeleteFile:
        return DeleteFile(self.files, self.objects, self._clock)

    def sweeping(self) -> DeleteLostObjects:
        return DeleteLostObjects(self.datasets, self.objects, self._clock, self._settings.max_upload_seconds)

    def _line_rules(self) -> LineRules:
        return LineRules(is_batch_only=True, most=self._settings.max_batch_lines)
