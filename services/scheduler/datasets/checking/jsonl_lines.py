"""JSON lines out of pieces of bytes. A line that is too long is told without being held."""

from collections.abc import Iterator

import orjson

from services.scheduler.datasets.checking.dataset_fault import BrokenFile, FaultKind, LineFault
from services.scheduler.datasets.checking.row_reader import BOM, MAX_ROW_BYTES, NumberedValue

MAX_BLANK_LINES = 100_000
_TOO_LONG = f"The line has more than {MAX_ROW_BYTES // 1024**2} MiB. Shorten it."


def read_jsonl(pieces: Iterator[bytes]) -> Iterator[NumberedValue]:
    """Blank lines are skipped at the end of the file and faults elsewhere."""
    number = blank = 0
    for line in split_lines(pieces):
        number += 1
        try:
            if line is None:
                value: object = LineFault("", _TOO_LONG)
            else:
                value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            assert line is not None
            if not line.strip():
                blank += 1
                if blank > MAX_BLANK_LINES:
                    raise BrokenFile(f"It has more than {MAX_BLANK_LINES} blank lines.") from None
                continue
            value = _fault_of(line, error)
        if blank:
            for above in range(number - blank, number):
                yield above, LineFault("", "The line is blank. Remove it, or the lines behind it.")
            blank = 0
        yield number, value


def split_lines(pieces: Iterator[bytes]) -> Iterator[bytes | None]:
    """Lines without their ends and without the mark at the start of a file; None for one too long."""
    held: list[bytes] = []
    size, is_first = 0, True
    for piece in pieces:
        head, *lines = piece.split(b"\n")
        size += len(head)
        if size <= MAX_ROW_BYTES:
            held.append(head)
        else:
            held.clear()
        if not lines:
            continue
        line = _joined(held, size)
        yield line.removeprefix(BOM) if is_first and line else line
        is_first = False
        last = lines.pop()
        yield from lines
        held, size = [last], len(last)
    if size:
        line = _joined(held, size)
        yield line.removeprefix(BOM) if is_first and line else line


def _joined(held: list[bytes], size: int) -> bytes | None:
    return b"".join(held) if size <= MAX_ROW_BYTES else None


def _fault_of(line: bytes, error: orjson.JSONDecodeError) -> LineFault:
    try:
        line.decode()
    except UnicodeDecodeError as undecoded:
        problem = f"Its bytes are not valid UTF-8, from byte {undecoded.start + 1} on."
    else:
        problem = f"It is not valid JSON: {error.msg}, at letter {error.colno}."
        if b"\0" in line:
            problem = f"It holds a NUL character, at byte {line.index(0) + 1}. Leave it out."
    return LineFault("", problem, FaultKind.UNREADABLE)
