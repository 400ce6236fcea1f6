"""A form with a mapping and a file, in pieces as a network cuts it."""

from typing import Any

import pytest
from starlette.requests import Request

from proctor.v1 import dataset_service_pb2 as dataset_pb2
from services.gateway.api.datasets.upload import beginning_of
from services.gateway.http.errors import MalformedForm

FILE = ("file", 'Content-Disposition: form-data; name="file"; filename="a.csv"', b"question\nx\n")


def field(name: str, content: bytes) -> tuple[str, str, bytes]:
    return name, f'Content-Disposition: form-data; name="{name}"', content


async def sent(*parts: tuple[str, str, bytes], piece_bytes: int) -> dataset_pb2.PreviewUploadRequest:
    body = b"".join(b"--b\r\n%b\r\n\r\n%b\r\n" % (head.encode(), content) for _, head, content in parts)
    body += b"--b--\r\n"
    pieces = [body[start : start + piece_bytes] for start in range(0, len(body), piece_bytes)]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    headers = [(b"content-type", b"multipart/form-data; boundary=b")]
    request = Request({"type": "http", "method": "POST", "headers": headers}, receive)
    return await beginning_of(request, dataset_pb2.DatasetHeader())


@pytest.mark.parametrize("piece_bytes", [1, 2, 3, 7, 4096])
async def test_characters_are_whole_wherever_the_network_cuts_them(piece_bytes: int) -> None:
    prompt = "Größe von 中文 😀:\n\n{{question}}"
    written = prompt.replace("\n", "\r\n").encode()
    asked = await sent(field("prompt", written), field("target", "é".encode()), FILE, piece_bytes=piece_bytes)
    assert (asked.mapping.prompt, asked.mapping.target) == (prompt, "é")
    assert asked.beginning == b"question\nx\n"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ((field("prompt", b"a"), field("prompt", b"b"), FILE), "more than one field prompt"),
        ((field("prompt", b"\xff"), FILE), "not valid UTF-8"),
        ((field("prompt", b"x" * 20_001), FILE), "more than 20,000 characters"),
        ((field("prompt", b"x" * 200_000), FILE), "more than 20,000 characters"),
        ((FILE, field("prompt", b"a")), "has to stand before file"),
    ],
)
async def test_fields_that_cannot_be_read_are_refused(
    parts: tuple[tuple[str, str, bytes], ...], problem: str
) -> None:
    with pytest.raises(MalformedForm, match=problem):
        await sent(*parts, piece_bytes=4096)
