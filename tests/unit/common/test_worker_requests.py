"""A request of a worker has one response, whatever goes wrong; only errors of the domain say what."""

from typing import Any

import pytest
from google.protobuf.message import DecodeError

from proctor.v1.work_messages_pb2 import PutArtifactResponse
from proctor.values.rollout import PART_BYTES
from services.common.bounded_messages import TooManyBytes
from services.common.errors import DomainError
from services.common.nats.worker_requests import RequestHandler, response_to
from services.scheduler.rollouts.artifacts.nats import NatsArtifacts
from services.scheduler.rollouts.budgets.nats import NatsBudgets
from services.scheduler.uploads.task_sets.nats import NatsBundleAnswers

# Nothing is sent, and nothing asked for.
CONNECTION: Any = None
NOTHING: Any = None


class TooLarge(DomainError):
    """The part has {size} bytes, more than 9."""


class Storing:
    """Stores what it is sent, or raises `error`."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.stored: list[bytes] = []

    async def respond(self, data: bytes) -> PutArtifactResponse:
        if self.error:
            raise self.error
        self.stored.append(data)
        return PutArtifactResponse()

    def refuse(self, problem: str, error: Exception) -> PutArtifactResponse:
        assert error is self.error
        return PutArtifactResponse(problem=problem, is_refused=isinstance(error, DomainError))


async def test_a_request_is_answered_by_its_handler() -> None:
    storing = Storing()
    assert await response_to(b"part", storing) == PutArtifactResponse()
    assert storing.stored == [b"part"]


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (
            TooLarge(size=12),
            PutArtifactResponse(problem="The part has 12 bytes, more than 9.", is_refused=True),
        ),
        (DecodeError("tag 9"), PutArtifactResponse(problem="The request cannot be read.")),
        (
            OSError("s3://bucket: key AKIA refused"),
            PutArtifactResponse(problem="The service failed; its log says why."),
        ),
    ],
)
async def test_a_failure_is_one_sentence_without_the_inside_of_the_service(
    error: Exception, refused: PutArtifactResponse
) -> None:
    assert await response_to(b"part", Storing(error)) == refused


@pytest.mark.parametrize(
    ("reader", "limit"),
    [
        (NatsBundleAnswers(CONNECTION, NOTHING), 1024),
        (NatsBudgets(CONNECTION, NOTHING, "key"), 64 * 1024),
        (NatsArtifacts(CONNECTION, NOTHING, "key"), PART_BYTES + 64 * 1024),
    ],
)
async def test_a_request_is_not_parsed_beyond_the_bytes_of_its_subject(
    reader: RequestHandler, limit: int
) -> None:
    """NATS has a limit of a payload for the whole server only."""
    with pytest.raises(TooManyBytes):
        await reader.respond(b"\xff" * (limit + 1))
    with pytest.raises(DecodeError) as unreadable:
        await reader.respond(b"\xff" * limit)
    assert not isinstance(unreadable.value, TooManyBytes)
