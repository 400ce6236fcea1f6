"""Answers workers that ask for files of tasks. Schedulers share a queue group, so that one answers."""

from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from services.common.errors import DomainError
from services.common.nats.answers import WorkerRequests
from services.common.structured_logs import get_logger
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.task_sets.find_bundle import FindBundle

log = get_logger()

_QUEUE = "scheduler"


class NatsBundleAnswers:
    def __init__(self, connection: Client, bundles: FindBundle) -> None:
        self._requests = WorkerRequests(connection, messaging.ALL_BUNDLES, _QUEUE)
        self._bundles = bundles

    async def answer(self) -> NoReturn:
        await self._requests.answer(self._respond)

    async def _respond(self, data: bytes) -> bytes:
        try:
            wanted = work_messages_pb2.ReadBundleRequest.FromString(data)
            content = await self._bundles.find(wanted.digest, max(wanted.first_byte, 0))
            response = work_messages_pb2.ReadBundleResponse(content=content)
        except DecodeError:
            response = work_messages_pb2.ReadBundleResponse(problem="The request cannot be read.")
        except DomainError as error:
            is_missing = isinstance(error, TasksNotFound)
            response = work_messages_pb2.ReadBundleResponse(problem=str(error), is_missing=is_missing)
        except Exception:  # an edge: one request that fails ends no other
            log.exception("files of a task cannot be read")
            response = work_messages_pb2.ReadBundleResponse(problem="The scheduler failed; its log says why.")
        return response.SerializeToString()
