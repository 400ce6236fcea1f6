"""A request of a worker has one response, whatever goes wrong; only errors of the domain say what."""

import pytest
from google.protobuf.message import DecodeError

from proctor.v1.work_messages_pb2 import PutArtifactResponse
from services.common.errors import DomainError
from services.common.nats.worker_requests import response_to


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
