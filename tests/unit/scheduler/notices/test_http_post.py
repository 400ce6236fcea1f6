"""What a request to a URL of users reaches, and what is said of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.scheduler.notices.errors import NotDelivered
from services.scheduler.notices.http_addresses import networks_of
from services.scheduler.notices.http_sender import HttpPost

SECRET = "T0/B0/a-secret"


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port of this machine and what it was sent; it answers each connection so."""
    sent: list[bytes] = []

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await reader.read(65536))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(answer_one, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], sent


async def problem_of(url: str, allowed: str = "") -> NotDelivered:
    with pytest.raises(NotDelivered) as raised:
        await HttpPost(networks_of(allowed)).post(url, b"{}", {})
    return raised.value


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f.1", "017700000001", "0", "0.0.0.0", "localhost"),
        # Digits of other scripts, which become those above on the way.
        *(
            "\uff11\uff12\uff17.0.0.1",
            "127\u30020\u30020\u30021",
            "\u2460\u2461\u2466.0.0.1",
            "127.0.0.\u0661",
        ),
        *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]"),
    ],
)
async def test_no_form_of_a_private_address_is_connected_to(host: str) -> None:
    async with answering(b"HTTP/1.1 204 No Content\r\n\r\n") as (port, sent):
        await problem_of(f"http://{host}:{port}/")
        assert sent == []
        await HttpPost(networks_of("127.0.0.0/8")).post(f"http://127.0.0.1:{port}/", b"{}", {})
        assert len(sent) == 1


@pytest.mark.parametrize(
    "answer",
    [b"SSH-2.0-inside\r\n", b"HTTP/1.1 abc inside\r\n\r\n", b"HTTP/1.1 200 OK\r\ninside\r\n\r\n", b""],
)
async def test_neither_the_url_nor_bytes_of_the_answer_are_said(answer: bytes) -> None:
    async with answering(answer) as (port, _):
        refused = await problem_of(f"http://127.0.0.1:{port}/services/{SECRET}", "127.0.0.0/8")
    assert refused.problem == "It did not answer in HTTP."


async def test_url_that_cannot_be_asked_is_not_said() -> None:
    refused = await problem_of(f"https://127.1/services/{SECRET}")
    assert refused.problem == "Its URL names no host that can be asked."
