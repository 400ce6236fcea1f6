"""Data sets that runs can be over, checked and packed as an upload is, in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from services.scheduler.uploads.add_dataset import content_of
from services.scheduler.uploads.checking.check_file import CheckFile
from services.scheduler.uploads.dataset import DatasetHeader, NamedContent
from services.scheduler.uploads.errors import DatasetNotFound
from services.scheduler.uploads.processes.upload_checks import DATASET_READERS
from tests.fakes.storage.checked_files import NO_LIMITS, jsonl
from tests.fakes.storage.memory_objects import MemoryObjects


@dataclass
class UploadedContents:
    """Their ids count: "ds_" and 32 digits."""

    objects: MemoryObjects = field(default_factory=MemoryObjects)
    contents: dict[str, NamedContent] = field(default_factory=dict)

    def upload(self, lines: Iterable[object], name: str = "rows.jsonl") -> str:
        """Gives the id."""
        dataset_id = f"ds_{len(self.contents):032}"
        prefix = f"datasets/{dataset_id}"
        checking = CheckFile(DATASET_READERS, self.objects, NO_LIMITS)
        checked = checking.check(DatasetHeader(name, "ann"), [jsonl(lines)], prefix)
        assert checked.facts is not None, checked.faults
        content = content_of(checked, checked.facts, prefix)
        self.contents[dataset_id] = NamedContent(name, content)
        return dataset_id

    async def content(self, dataset_id: str) -> NamedContent:
        if dataset_id not in self.contents:
            raise DatasetNotFound(dataset_id=dataset_id)
        return self.contents[dataset_id]
