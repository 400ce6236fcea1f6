"""Errors of reading rows."""


class UnreadableParquet(Exception):
    """The file, or what is left of it, cannot be read; the message is a clause."""


class LargeGroup(UnreadableParquet):
    """A row group would have to be held in memory as a whole."""


class UnreadableValue(UnreadableParquet):
    """The file is valid, but Python has no such date, time or time zone."""


class RowsMissing(Exception):
    """A source does not have the rows. The message continues 'Failed to load … dataset: …: '."""


class UnreadableRow(Exception):
    """A row of a file, counted from 1 as lines are, cannot be read."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(f"row {row}: {problem}")
        self.row = row
        self.problem = problem
