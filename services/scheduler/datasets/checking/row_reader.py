"""What reads a file of one format: pieces of bytes become values, each with the number of its line."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

# A mark that some programs write before UTF-8.
BOM = b"\xef\xbb\xbf"
# What one work message may hold; also the most that a line may have.
MAX_ROW_BYTES = 4 * 1024 * 1024

# A value, or the `LineFault` that is in its place.
NumberedValue: TypeAlias = tuple[int, object]
# Raises `BrokenFile` where nothing more can be read.
RowReader: TypeAlias = Callable[[Iterator[bytes]], Iterator[NumberedValue]]
