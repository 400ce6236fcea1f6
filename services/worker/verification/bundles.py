"""The files of a task as they travel: tar files compressed by gzip."""

import io
import zlib
from collections.abc import Collection

from services.worker.sandboxes.errors import FilesRefused
from services.worker.sandboxes.sandbox import TarLimits
from services.worker.sandboxes.tar_files import PackedFile, pack, read_files


def inflated(bundle: bytes) -> bytes:
    """The tar of a bundle; one without members for an empty bundle. Raises FilesRefused."""
    if not bundle:
        return pack({})
    inflater, most = zlib.decompressobj(wbits=31), TarLimits().stream_bytes
    try:
        tar = inflater.decompress(bundle, most)
    except zlib.error as error:
        raise FilesRefused(path="the task", problem="its bundle is broken.") from error
    if not inflater.eof:
        raise FilesRefused(path="the task", problem=f"its bundle has more than {most:,} bytes.")
    return tar


def only_named(tar: bytes, names: Collection[str]) -> bytes:
    """The files with one of these names, wherever they lie."""
    kept = {
        file.name: PackedFile(file.content, file.mode)
        for file in read_files(io.BytesIO(tar), "the task", TarLimits())
        if file.name.rsplit("/", 1)[-1] in names
    }
    return pack(kept)
