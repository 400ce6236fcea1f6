"""Errors of templates."""


class OverBudget(Exception):
    """A rendering exceeds a limit; the message names the limit."""


class InvalidTemplate(Exception):
    """A template cannot be compiled."""


class RowFault(Exception):
    """A row lacks something that the template or the task needs; `field` names the column if known."""

    def __init__(self, problem: str, field: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.field = field


class UnfitTemplate(Exception):
    """A template is too large, or uses a statement that is not supported."""


class NullWritten(Exception):
    """A template writes a null; the model would see the word None."""
