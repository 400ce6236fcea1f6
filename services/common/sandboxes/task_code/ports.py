"""The port by which the code of a task is executed."""

from collections.abc import Generator, Iterator, Mapping
from typing import Protocol

# Files of Python, and what they read, by their paths in the suite's root.
CodeFiles = Mapping[str, bytes]


class CodeEnded(Exception):
    """The code ended before its last line. The message is a clause that says why: "took more than 300 s"."""


class CodeRunner(Protocol):
    def lines(
        self, files: CodeFiles, given: Iterator[bytes], *, takes_lines_of_code: bool = False
    ) -> Generator[bytes, None, None]:
        """Lines that the code writes of the given lines, as `inside.program` does. They are not trusted.

        Blocks; to be closed where it is not read to its end. `takes_lines_of_code`: reading the given lines
        may start other code. Raises `CodeEnded`.
        """
        ...
