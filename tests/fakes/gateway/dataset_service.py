"""Fake of the scheduler: data sets. A line is a row; one that begins with `broken` is wrong."""

# ruff: noqa: N802, ARG002  # names and parameters are those of the contracts

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from proctor.v1 import dataset_service_pb2_grpc as dataset_grpc
from services.common.errors import ErrorKind, RemoteError
from tests.fakes.refusals import refused

BROKEN = b"broken"
_MAX_FAULTS = 20


def stored_dataset(dataset_id: str, **fields: Any) -> dataset_pb2.Dataset:
    """A data set as the scheduler has it: with its format, and the time of its upload."""
    dataset = dataset_pb2.Dataset(dataset_id=dataset_id, format=dataset_pb2.DATASET_FORMAT_JSONL, **fields)
    dataset.uploaded_at.FromSeconds(1_700_000_000)
    return dataset


@dataclass
class FakeDatasets(dataset_grpc.DatasetServiceServicer):
    """Keeps data sets, and of those that came in only the digest; `content` is the last file if it is small.

    `refusal` ends an upload after `refuse_after_bytes`; `gate` holds its reading.
    """

    kept: dict[str, dataset_pb2.Dataset] = field(default_factory=dict)
    rows: dict[str, list[dataset_pb2.DatasetRow]] = field(default_factory=dict)
    in_use: set[str] = field(default_factory=set)
    headers: list[dataset_pb2.DatasetHeader] = field(default_factory=list)
    content: bytes = b""
    # The error of the next one, in place of its own.
    digest: str = ""
    piece_sizes: list[int] = field(default_factory=list)
    open_uploads: int = 0
    cut_off: int = 0
    refusal: RemoteError | None = None
    refuse_after_bytes: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    mappings: dict[tuple[int, str], dataset_pb2.SavedMapping] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gate.set()

    def register(self, server: grpc.aio.Server) -> None:
        dataset_grpc.add_DatasetServiceServicer_to_server(self, server)

    async def UploadDataset(
        self, request_iterator: AsyncIterator[dataset_pb2.UploadDatasetRequest], context: Any
    ) -> dataset_pb2.UploadDatasetResponse:
        self.open_uploads += 1
        is_ended = False
        try:
            response = await self._read(request_iterator)
            is_ended = True
            return response
        finally:
            self.open_uploads -= 1
            self.cut_off += not is_ended

    async def _read(
        self, pieces: AsyncIterator[dataset_pb2.UploadDatasetRequest]
    ) -> dataset_pb2.UploadDatasetResponse:
        digest, content, size, is_whole = hashlib.sha256(), b"", 0, False
        async for piece in pieces:
            await self.gate.wait()
            match piece.WhichOneof("chunk"):
                case "header":
                    self.headers.append(piece.header)
                case "content":
                    digest.update(piece.content)
                    size += len(piece.content)
                    self.piece_sizes.append(len(piece.content))
                    content = content + piece.content if size < 1_000_000 else b""
                case "end":
                    is_whole = True
            if self.refusal and size >= self.refuse_after_bytes:
                raise self.refusal
        if not is_whole:
            raise refused(ErrorKind.INVALID, "INVALID_PARAMETER", "The upload was cut off.")
        self.content = content
        return self._checked(self.headers[-1], digest.hexdigest(), size)

    def _checked(
        self, header: dataset_pb2.DatasetHeader, digest: str, size: int
    ) -> dataset_pb2.UploadDatasetResponse:
        lines = self.content.splitlines()
        faults = [
            dataset_pb2.DatasetFault(
                line=number, field="body", problem=f"{line.decode()} is not a row", text=line.decode()
            )
            for number, line in enumerate(lines, 1)
            if line.startswith(BROKEN)
        ]
        if faults:
            return dataset_pb2.UploadDatasetResponse(faults=faults[:_MAX_FAULTS], fault_count=len(faults))
        dataset = dataset_pb2.Dataset(
            dataset_id=f"ds_{len(self.kept):032x}",
            name=header.name,
            row_count=len(lines),
            size_bytes=size,
            digest=self.digest or digest,
            format=header.format or dataset_pb2.DATASET_FORMAT_JSONL,
            user=header.user,
            models=["starter"],
            endpoint="/v1/completions",
        )
        self.digest = ""
        dataset.uploaded_at.FromSeconds(1_700_000_000 + len(self.kept))
        self.kept[dataset.dataset_id] = dataset
        self.rows[dataset.dataset_id] = [_row(number) for number in range(len(lines))]
        return dataset_pb2.UploadDatasetResponse(dataset=dataset)

    async def GetDataset(
        self, request: dataset_pb2.GetDatasetRequest, context: Any
    ) -> dataset_pb2.GetDatasetResponse:
        return dataset_pb2.GetDatasetResponse(dataset=self._dataset(request.dataset_id))

    async def ListDatasets(
        self, request: dataset_pb2.ListDatasetsRequest, context: Any
    ) -> dataset_pb2.ListDatasetsResponse:
        first, size = int(request.page_token or 0), request.page_size or 100
        newest = list(reversed(self.kept.values()))
        more = str(first + size) if first + size < len(newest) else ""
        return dataset_pb2.ListDatasetsResponse(
            datasets=newest[first : first + size], next_page_token=more, total=len(newest)
        )

    async def PreviewDataset(
        self, request: dataset_pb2.PreviewDatasetRequest, context: Any
    ) -> dataset_pb2.PreviewDatasetResponse:
        self._dataset(request.dataset_id)
        last = request.first_doc_id + (request.row_count or 10)
        return dataset_pb2.PreviewDatasetResponse(
            rows=self.rows[request.dataset_id][request.first_doc_id : last]
        )

    async def PreviewUpload(
        self, request: dataset_pb2.PreviewUploadRequest, context: Any
    ) -> dataset_pb2.PreviewUploadResponse:
        """Proposes the same mapping for each file, whose first line is its one row."""
        first = request.beginning.partition(b"\n")[0].decode()
        mapping = dataset_pb2.ColumnMapping(prompt="{{question}}", target="answer")
        return dataset_pb2.PreviewUploadResponse(
            format=dataset_pb2.DATASET_FORMAT_CSV,
            columns=["question", "answer"],
            mapping=request.mapping if request.HasField("mapping") else mapping,
            is_proposed=not request.HasField("mapping"),
            rows=[dataset_pb2.DatasetRow(row_id="0", body_json=json.dumps({"prompt": first}))],
        )

    async def SaveMapping(
        self, request: dataset_pb2.SaveMappingRequest, context: Any
    ) -> dataset_pb2.SaveMappingResponse:
        if "{{" not in request.mapping.prompt:
            raise refused(ErrorKind.INVALID, "INVALID_PARAMETER", "prompt names no column.")
        saved = dataset_pb2.SavedMapping(
            name=request.name, mapping=request.mapping, user="local", project_id=request.project_id
        )
        saved.saved_at.FromSeconds(1_700_000_000)
        self.mappings[request.project_id, request.name] = saved
        return dataset_pb2.SaveMappingResponse(saved=saved)

    async def GetMapping(
        self, request: dataset_pb2.GetMappingRequest, context: Any
    ) -> dataset_pb2.GetMappingResponse:
        return dataset_pb2.GetMappingResponse(saved=self._mapping(request.project_id, request.name))

    async def ListMappings(
        self, request: dataset_pb2.ListMappingsRequest, context: Any
    ) -> dataset_pb2.ListMappingsResponse:
        return dataset_pb2.ListMappingsResponse(mappings=self.mappings.values())

    async def DeleteMapping(
        self, request: dataset_pb2.DeleteMappingRequest, context: Any
    ) -> dataset_pb2.DeleteMappingResponse:
        self._mapping(request.project_id, request.name)
        del self.mappings[request.project_id, request.name]
        return dataset_pb2.DeleteMappingResponse()

    def _mapping(self, project_id: int, name: str) -> dataset_pb2.SavedMapping:
        if (project_id, name) not in self.mappings:
            raise refused(ErrorKind.NOT_FOUND, "MAPPING_NOT_FOUND", f"There is no saved mapping {name}.")
        return self.mappings[project_id, name]

    async def DeleteDataset(
        self, request: dataset_pb2.DeleteDatasetRequest, context: Any
    ) -> dataset_pb2.DeleteDatasetResponse:
        dataset_id = self._dataset(request.dataset_id).dataset_id
        if dataset_id in self.in_use:
            facts = {"dataset_id": dataset_id, "run_id": "r1"}
            raise refused(ErrorKind.CONFLICT, "DATASET_IN_USE", "Run r1 uses this data set.", **facts)
        del self.kept[dataset_id]
        return dataset_pb2.DeleteDatasetResponse()

    def name_of(self, dataset_id: str) -> str:
        """Empty for none."""
        return self.kept[dataset_id].name if dataset_id in self.kept else ""

    def _dataset(self, dataset_id: str) -> dataset_pb2.Dataset:
        if dataset_id not in self.kept:
            sentence = f"There is no data set {dataset_id}."
            raise refused(ErrorKind.NOT_FOUND, "DATASET_NOT_FOUND", sentence, dataset_id=dataset_id)
        return self.kept[dataset_id]


def _row(number: int) -> dataset_pb2.DatasetRow:
    row = dataset_pb2.DatasetRow(
        doc_id=number, row_id=f"request-{number}", body_json='{"prompt": "One and one?"}'
    )
    if number % 2:
        row.target, row.metadata_json = "two", '{"level": 1}'
    return row
