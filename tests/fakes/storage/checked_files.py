"""Files as an upload brings them, checked into a store in memory."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from proctor.values.uploads.column_mapping import ColumnMapping
from services.scheduler.uploads.add_dataset import content_of
from services.scheduler.uploads.checking.check_file import CheckedFile, CheckFile, SizeLimits
from services.scheduler.uploads.dataset import DatasetFormat, DatasetHeader, DatasetRow
from services.scheduler.uploads.processes.upload_checks import readers
from services.scheduler.uploads.storage.store_parts import LoadRows
from tests.fakes.storage.memory_objects import MemoryObjects

NO_LIMITS = SizeLimits(2**40, 2**40, 2**40)
PREFIX = "datasets/ds_1"


def batch_line(number: int = 0, **changes: object) -> dict[str, object]:
    body = {"model": "m", "messages": [{"role": "user", "content": f"Question {number}?"}]}
    return {
        "custom_id": f"r{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
        **changes,
    }


def jsonl(lines: Iterable[object]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@dataclass
class CheckedFiles:
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    limits: SizeLimits = NO_LIMITS

    def check(
        self,
        content: bytes,
        name: str = "rows.jsonl",
        form: DatasetFormat | None = None,
        piece_bytes: int = 2**16,
        *,
        mapping: ColumnMapping | None = None,
    ) -> CheckedFile:
        chunks = (content[start : start + piece_bytes] for start in range(0, len(content), piece_bytes))
        checking = CheckFile(readers(mapping), self.objects, self.limits)
        return checking.check(DatasetHeader(name, "ann", form, mapping=mapping), chunks, PREFIX)

    def rows(self, checked: CheckedFile, first_doc_id: int = 0) -> list[DatasetRow]:
        assert checked.facts is not None, checked.faults
        content = content_of(checked, checked.facts, PREFIX)
        return list(LoadRows(self.objects).rows_from(content, first_doc_id))


def faults_of(content: bytes, name: str = "rows.jsonl") -> list[tuple[int, str]]:
    """Line and field of each that is named."""
    return [(fault.line, fault.field) for fault in CheckedFiles().check(content, name).faults]


def problem_of(content: bytes, name: str = "rows.jsonl") -> str:
    [fault] = CheckedFiles().check(content, name).faults
    return fault.problem
