"""Frames between the scheduler and a process that checks an upload."""

import struct

from services.common.processes.plain_values import UnexpectedValue

# See decision 0022; a check that needs more is ended, with a sentence.
MEMORY_BYTES = 4 * 1024 * 1024 * 1024
# More than any object or result has.
MAX_FRAME_BYTES = 512 * 1024 * 1024
# To the process: the job, then pieces of the file and their end. From it: objects to store, then the result
# or an error.
JOB, PIECE, END, PUT, RESULT, ERROR = (bytes([sign]) for sign in b"JCEPRX")
_KEY = struct.Struct("<H")


def joined_key(key: str) -> bytes:
    """The key of an object, as it stands before its content."""
    name = key.encode()
    return _KEY.pack(len(name)) + name


def split_object(content: bytes) -> tuple[str, bytes]:
    """Key and content. Raises `UnexpectedValue`."""
    try:
        [size] = _KEY.unpack_from(content)
        start = _KEY.size + size
        return content[_KEY.size : start].decode(), content[start:]
    except (struct.error, UnicodeDecodeError) as error:
        raise UnexpectedValue("an object without a key") from error
