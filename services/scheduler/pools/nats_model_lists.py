"""Asks the workers of a pool for its models over NATS; one of them answers."""

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from nats.errors import NoRespondersError

from proctor.v1 import work_messages_pb2
from services.common import subjects
from services.common.clock import Clock
from services.common.jetstream import TRANSIENT_NATS
from services.common.lifecycle import raise_if_cancelled
from services.scheduler.pools.listed_model import PoolListing
from services.scheduler.pools.proto_models import model_from_proto

_REQUEST = work_messages_pb2.ListPoolModelsRequest().SerializeToString()


class NatsModelLists:
    def __init__(self, connection: Client, clock: Clock, limit_seconds: float) -> None:
        self._connection = connection
        self._clock = clock
        self._limit_seconds = limit_seconds

    async def of_pool(self, pool: str) -> PoolListing:
        try:
            subject = subjects.model_list_subject(pool)
            reply = await self._connection.request(subject, _REQUEST, timeout=self._limit_seconds)
            response = work_messages_pb2.ListPoolModelsResponse.FromString(reply.data)
        except NoRespondersError:
            return PoolListing(problem="No worker of the pool is running; start one.")
        except DecodeError:
            return PoolListing(problem="A worker's answer cannot be read; update the workers of the pool.")
        except TRANSIENT_NATS:
            raise_if_cancelled()
            return PoolListing(problem=f"The workers did not answer within {self._limit_seconds:g} s.")
        models = tuple(model_from_proto(model) for model in response.models)
        is_told = bool(models) or not response.problem
        return PoolListing(models, response.problem, self._clock.now() if is_told else None)
