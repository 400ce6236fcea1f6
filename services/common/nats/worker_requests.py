"""Answers requests of workers, which are trusted less than the service that answers them."""

import asyncio
from contextlib import suppress
from typing import NoReturn, Protocol

from google.protobuf.message import DecodeError, Message
from nats.aio.client import Client
from nats.aio.msg import Msg

from proctor.values import messaging
from services.common.errors import DomainError
from services.common.nats.connection import TRANSIENT_NATS
from services.common.structured_logs import get_logger

log = get_logger()

# Each holds a part of a file in memory; the workers that ask meanwhile wait.
_AT_A_TIME = 8
# The queue group that replicas of the scheduler share.
_QUEUE = "scheduler"


class RequestHandler(Protocol):
    """Answers one kind of request."""

    async def respond(self, data: bytes) -> Message:
        """Raises DecodeError for a request that cannot be read."""
        ...

    def refuse(self, problem: str, error: Exception) -> Message:
        """The response that has `problem`, a sentence, in place of content."""
        ...


class WorkerRequests:
    """Requests on subjects whose last token is the worker's pool. One replica of the scheduler answers each.

    NATS does not check the reply subject of a request against the permissions of its sender, and the answer
    is sent with the permissions of this service. So it goes only to an inbox that the workers of the pool may
    read.
    """

    def __init__(self, connection: Client, subject: str) -> None:
        self._connection = connection
        self._subject = subject
        self._slots = asyncio.Semaphore(_AT_A_TIME)
        self._pools_refused: set[str] = set()

    async def answer(self, handler: RequestHandler) -> NoReturn:
        """Answers each request, until cancelled. A request that fails ends no other."""
        subscription = await self._connection.subscribe(self._subject, queue=_QUEUE)
        async with asyncio.TaskGroup() as answers:
            async for request in subscription.messages:
                if self._may_be_answered(request):
                    await self._slots.acquire()
                    task = answers.create_task(self._answer(request, handler), name=self._subject)
                    task.add_done_callback(lambda _: self._slots.release())
        raise RuntimeError(f"the subscription to {self._subject} ended")

    async def _answer(self, request: Msg, handler: RequestHandler) -> None:
        response = await response_to(request.data, handler)
        with suppress(*TRANSIENT_NATS):  # the worker asks again
            await self._connection.publish(request.reply, response.SerializeToString())

    def _may_be_answered(self, request: Msg) -> bool:
        pool = request.subject.rpartition(".")[2]
        if is_inbox_of_pool(request.reply, pool, self._connection.new_inbox().rpartition(".")[0]):
            return True
        if pool not in self._pools_refused:
            self._pools_refused.add(pool)
            log.warning(
                "requests dropped: their reply subject is not an inbox of the pool's workers",
                pool=pool,
                subject=request.subject,
                reply=request.reply[:200],
            )
        return False


async def response_to(data: bytes, handler: RequestHandler) -> Message:
    """The response, or the refusal: an error of the domain says what is wrong, any other only that it is."""
    try:
        return await handler.respond(data)
    except DecodeError as error:
        return handler.refuse("The request cannot be read.", error)
    except DomainError as error:
        return handler.refuse(error.message, error)
    except Exception as error:  # an edge: one request that fails ends no other
        log.exception("a request of a worker failed", handler=type(handler).__name__)
        return handler.refuse("The service failed; its log says why.", error)


def is_inbox_of_pool(reply: str, pool: str, own_prefix: str) -> bool:
    """Whether only workers of a pool receive what is sent to a subject. `own_prefix` is that of this service.

    Where the services share a user, or have none that the URL names, their inboxes share a prefix.
    """
    prefixes = {messaging.inbox_prefix(messaging.worker_user(pool))}
    if own_prefix != messaging.inbox_prefix(messaging.SCHEDULER_USER):
        prefixes.add(own_prefix)
    return any(reply.startswith(f"{prefix}.") for prefix in prefixes)
