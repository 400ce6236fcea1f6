"""Storage in the place of the scheduler's: each user stores the same."""

# ruff: noqa: N802  # names and parameters are those of the contract

from dataclasses import dataclass, field
from typing import Any

import grpc

from proctor.v1 import storage_service_pb2 as messages
from proctor.v1 import storage_service_pb2_grpc
from services.common.grpc.principal import principal_of


@dataclass
class FakeStorage(storage_service_pb2_grpc.StorageServiceServicer):
    asked: list[str] = field(default_factory=list)

    def register(self, server: grpc.aio.Server) -> None:
        storage_service_pb2_grpc.add_StorageServiceServicer_to_server(self, server)

    async def GetStorage(
        self, request: messages.GetStorageRequest, context: Any
    ) -> messages.GetStorageResponse:
        self.asked.append(request.user)
        used = messages.StorageUse(bytes=1_500_000, files=3, rows=1_200)
        return messages.GetStorageResponse(
            user=request.user or principal_of(context.invocation_metadata()).name,
            used=used,
            limit=messages.StorageUse(bytes=100_000_000_000, files=10_000, rows=200_000_000),
            shares=[messages.StorageShare(kind="datasets", used=used)],
        )
