"""The pieces of an upload, of a data set and of a file alike: the header first, the end last."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import TypeVar

from proctor.v1.dataset_service_pb2 import UploadDatasetRequest
from proctor.v1.file_service_pb2 import UploadFileRequest
from services.scheduler.datasets.dataset_errors import UploadCutOff
from services.scheduler.errors import InvalidParameter

MAX_PIECE_BYTES = 1024 * 1024

Piece = TypeVar("Piece", UploadDatasetRequest, UploadFileRequest)


async def begun_upload(requests: AsyncIterable[Piece]) -> tuple[Piece, AsyncIterator[bytes]]:
    """The piece with the header, and the bytes of the file.

    Raises `InvalidParameter` where the header is not first. Reading the bytes raises it too, where a piece is
    too large or the header comes again; and `UploadCutOff` where the end does not come.
    """
    pieces = aiter(requests)
    first = await anext(pieces, None)
    if first is None or first.WhichOneof("chunk") != "header":
        raise InvalidParameter(field="header", sentence="The first piece must be the header.")
    return first, _contents(pieces)


async def _contents(pieces: AsyncIterator[Piece]) -> AsyncIterator[bytes]:
    """A caller who dies looks like one who has sent everything, but he does not say so."""
    async for piece in pieces:
        match piece.WhichOneof("chunk"):
            case "end":
                return
            case "content" if len(piece.content) <= MAX_PIECE_BYTES:
                yield piece.content
            case "content":
                sentence = f"A piece has {len(piece.content)} bytes, but must have at most {MAX_PIECE_BYTES}."
                raise InvalidParameter(field="content", sentence=sentence)
            case _:
                raise InvalidParameter(field="header", sentence="Only the first piece may be a header.")
    raise UploadCutOff
