"""Answers workers that ask for files of tasks. Schedulers share a queue group, so that one answers."""

import asyncio
from contextlib import suppress
from typing import NoReturn

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.v1 import work_messages_pb2
from proctor.values import messaging
from services.common.errors import DomainError
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger
from services.scheduler.uploads.errors import TasksNotFound
from services.scheduler.uploads.task_sets.find_bundle import FindBundle

log = get_logger()

_QUEUE = "scheduler"
# Each holds a part in memory; the workers that ask meanwhile wait.
_AT_A_TIME = 8


class NatsBundleAnswers:
    def __init__(self, connection: Client, bundles: FindBundle) -> None:
        self._connection = connection
        self._bundles = bundles
        self._slots = asyncio.Semaphore(_AT_A_TIME)

    async def answer(self) -> NoReturn:
        subscription = await self._connection.subscribe(messaging.ALL_BUNDLES, queue=_QUEUE)
        async with asyncio.TaskGroup() as answers:
            async for request in subscription.messages:
                await self._slots.acquire()
                task = answers.create_task(self._answer(request), name="read bundle")
                task.add_done_callback(lambda _: self._slots.release())
        raise RuntimeError("the subscription to requests for files of tasks ended")

    async def _answer(self, request: Msg) -> None:
        try:
            wanted = work_messages_pb2.ReadBundleRequest.FromString(request.data)
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
        with suppress(*TRANSIENT_NATS):  # the worker asks again
            await request.respond(response.SerializeToString())
