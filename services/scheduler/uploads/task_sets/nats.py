"""Answers workers that ask for files of tasks. Schedulers share a queue group, so that one answers."""

from typing import NoReturn

from nats.aio.client import Client

from proctor.v1 import work_messages_pb2
from proctor.wire.subjects import BUNDLES
from services.common.bounded_messages import read_message
from services.common.nats.worker_requests import WorkerRequests
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.task_sets.find_tasks import FindBundle


class NatsBundleAnswers:
    def __init__(self, connection: Client, bundles: FindBundle) -> None:
        self._requests = WorkerRequests(connection, BUNDLES.subject)
        self._bundles = bundles

    async def answer(self) -> NoReturn:
        await self._requests.answer(self)

    async def respond(self, data: bytes) -> work_messages_pb2.ReadBundleResponse:
        wanted = read_message(BUNDLES.kind, data, BUNDLES.max_bytes)
        content = await self._bundles.find(wanted.digest, max(wanted.first_byte, 0))
        return work_messages_pb2.ReadBundleResponse(content=content)

    def refuse(self, problem: str, error: Exception) -> work_messages_pb2.ReadBundleResponse:
        is_missing = isinstance(error, TasksNotFound)
        return work_messages_pb2.ReadBundleResponse(problem=problem, is_missing=is_missing)
