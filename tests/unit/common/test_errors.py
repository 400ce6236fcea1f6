"""Errors carry one sentence, a reason and their facts, over gRPC and back."""

from google.rpc import code_pb2, error_details_pb2

from services.common.errors import DomainError, ErrorKind
from services.common.grpc.errors import masked_status, status_of


class RoomTaken(DomainError):
    """Room {room} is taken until {hour} o'clock. Ask for another."""

    kind = ErrorKind.CONFLICT
    reason = "ROOM_TAKEN"


def test_the_docstring_is_the_message_with_the_facts_filled_in() -> None:
    error = RoomTaken(room="blue", hour=4)

    assert str(error) == "Room blue is taken until 4 o'clock. Ask for another."
    assert error.facts == {"room": "blue", "hour": 4}


def test_the_wire_form_names_code_reason_and_facts() -> None:
    status = status_of(RoomTaken(room="blue", hour=4))
    info = error_details_pb2.ErrorInfo()

    assert status.code == code_pb2.FAILED_PRECONDITION
    assert status.details[0].Unpack(info)
    assert (info.reason, info.domain, dict(info.metadata)) == (
        "ROOM_TAKEN",
        "proctor",
        {"room": "blue", "hour": "4"},
    )


def test_a_masked_error_says_only_where_to_look() -> None:
    status = masked_status("abc123")

    assert status.code == code_pb2.INTERNAL
    assert "abc123" in status.message


def test_what_is_too_long_for_a_header_keeps_its_ends() -> None:
    status = status_of(RoomTaken(room="é" * 200_000, hour=4))
    info = error_details_pb2.ErrorInfo()

    assert status.ByteSize() < 3000
    assert status.details[0].Unpack(info)
    assert status.message.startswith("Room éé")
    assert status.message.endswith("é is taken until 4 o'clock. Ask for another.")
    assert "é…é" in info.metadata["room"]
