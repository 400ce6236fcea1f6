"""The documents of a corpus folder, read piece by piece: no file is in memory as a whole."""

import codecs
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from proctor.client.errors import Refused

# Pieces that are read, and the longest line of JSON that is taken for one document.
_PIECE_BYTES = 1024 * 1024
_MAX_LINE_BYTES = 64 * 1024 * 1024
_LINES = (".jsonl", ".ndjson")
_PACKED = ".gz"


def corpus_files(folder: Path) -> Iterator[Path]:
    """All files below the folder in the order of their paths. Raises Refused for what is no folder."""
    if not folder.is_dir():
        raise Refused(f"{folder} is no folder; name the one with the files of the corpus.")
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


def documents(path: Path) -> Iterator[Iterator[str]]:
    """The documents of a file, each as its pieces in order. They are to be read one after the other.

    Lines of JSON (.jsonl, .ndjson) are documents of all the texts in them; any other file is one document
    of text in UTF-8, whose wrong bytes are left out. A name that ends in .gz is unpacked. Raises Refused.
    """
    try:
        with _opened(path) as file:
            if path.name.removesuffix(_PACKED).endswith(_LINES):
                for line in _lines(file, path):
                    yield iter([line])
            else:
                yield _pieces(file, path)
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def _opened(path: Path) -> BinaryIO:
    packed = path.name.endswith(_PACKED)
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]  # a reader of bytes


def _pieces(file: BinaryIO, path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    try:
        while piece := file.read(_PIECE_BYTES):
            yield decoder.decode(piece)
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> Refused:
    return Refused(f"{path} cannot be read: {error}.")


def _lines(file: BinaryIO, path: Path) -> Iterator[str]:
    while line := file.readline(_MAX_LINE_BYTES):
        if len(line) == _MAX_LINE_BYTES:
            raise Refused(f"{path} has a line of more than {_MAX_LINE_BYTES:,} bytes: split it.")
        if line.strip():
            yield _texts_of(line)


def _texts_of(line: bytes) -> str:
    """All texts of a value of JSON; the line itself where it is none."""
    try:
        return "\n".join(texts_in(json.loads(line)))
    except (ValueError, RecursionError):
        return line.decode("utf-8", "ignore")


def texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_in(each)
