"""A stream is read alike wherever it is cut."""

import random
from collections.abc import Iterable

import pytest

from services.worker.engines.errors import ProviderFailed
from services.worker.engines.http.event_stream import (
    END_OF_STREAM,
    MAX_EVENT_BYTES,
    EventReader,
    JsonLines,
    ServerSentEvents,
    StreamEvent,
)

# What servers and proxies on the way make of it: a mark at the front, comments, names, empty and long data.
RECORDED = (
    "\ufeffdata: first\r\n\r\n"
    ": a comment keeps the connection\r\n\r\n"
    "event: named\ndata:  two blanks, of which one goes\n\n"
    "data: a line\ndata: and another\n\n"
    "id: 7\nretry: 10\nevent: forgotten\n\n"
    "data: Zwölf Äpfel 🍏\n\n"
    "data\n\n"
    "event: old\rdata: by carriage returns\r\r"
    "unknown: field\n"
    "data: [DONE]"
)
EVENTS = [
    StreamEvent(b"first"),
    StreamEvent(b" two blanks, of which one goes", "named"),
    StreamEvent(b"a line\nand another"),
    StreamEvent("Zwölf Äpfel 🍏".encode()),
    StreamEvent(b""),
    StreamEvent(b"by carriage returns", "old"),
    StreamEvent(b"[DONE]"),
]


def read(reader: EventReader, pieces: Iterable[bytes]) -> list[StreamEvent]:
    return [event for piece in [*pieces, END_OF_STREAM] for event in reader.feed(piece)]


def test_events_are_read_alike_wherever_they_are_cut_in_two() -> None:
    body = RECORDED.encode()
    for at in range(len(body) + 1):
        assert read(ServerSentEvents(), [body[:at], body[at:]]) == EVENTS, at


@pytest.mark.parametrize("maximum", [1, 2, 3, 7])
def test_events_are_read_alike_in_crumbs(maximum: int) -> None:
    body, draw = RECORDED.encode(), random.Random(maximum)
    pieces = []
    while body:
        size = draw.randint(1, maximum)
        pieces.append(body[:size])
        body = body[size:]
    assert read(ServerSentEvents(), pieces) == EVENTS


def test_documents_are_read_alike_wherever_their_lines_are_cut() -> None:
    body = '{"a": "ä"}\r\n\n{"b":2}\n{"last": "without an end"}'.encode()
    reported = [StreamEvent('{"a": "ä"}'.encode()), StreamEvent(b'{"b":2}')]
    for at in range(len(body) + 1):
        assert read(JsonLines(), [body[:at], body[at:]]) == [
            *reported,
            StreamEvent(b'{"last": "without an end"}'),
        ]


@pytest.mark.parametrize(
    ("reader", "piece"),
    [
        (JsonLines(), b"x" * 65536),
        (ServerSentEvents(), b"x" * 65536),
        (ServerSentEvents(), b"data: " + b"x" * 65536 + b"\n"),
    ],
    ids=["line", "field", "lines of one event"],
)
def test_an_endless_event_is_refused(reader: EventReader, piece: bytes) -> None:
    with pytest.raises(ProviderFailed, match="without an end"):
        read(reader, [piece] * (MAX_EVENT_BYTES // 65536 + 1))
