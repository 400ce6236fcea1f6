"""StorageService: converts, reads, converts."""

# ruff: noqa: N802 - names are those of the generated service

from dataclasses import dataclass

import grpc

from proctor.v1 import storage_service_pb2 as storage_pb2
from proctor.v1 import storage_service_pb2_grpc as storage_grpc
from proctor.wire.convert import Codec
from services.common.checked_fields import refuse
from services.common.grpc.caller import caller_of
from services.common.grpc.server import RpcContext
from services.common.requests.request_fields import user_problem
from services.scheduler.uploads.quotas.ports import StorageSource
from services.scheduler.uploads.quotas.storage_use import StorageUse

SERVICE_NAME = storage_pb2.DESCRIPTOR.services_by_name["StorageService"].full_name
_USE = Codec(StorageUse, storage_pb2.StorageUse)


@dataclass(frozen=True, kw_only=True)
class GrpcStorageApi(storage_grpc.StorageServiceServicer):
    """`StorageService` over gRPC."""

    storage: StorageSource

    def register(self, server: grpc.aio.Server) -> None:
        storage_grpc.add_StorageServiceServicer_to_server(self, server)

    async def GetStorage(
        self, request: storage_pb2.GetStorageRequest, context: RpcContext
    ) -> storage_pb2.GetStorageResponse:
        user = request.user or caller_of(context.invocation_metadata()).name
        refuse(user_problem(user))
        stored = await self.storage.of(user)
        return storage_pb2.GetStorageResponse(
            user=user,
            used=_USE.to_proto(stored.quota.used),
            limit=_USE.to_proto(stored.limit),
            shares=[
                storage_pb2.StorageShare(kind=kind, used=_USE.to_proto(used))
                for kind, used in sorted(stored.shares.items())
            ],
        )
