"""Whose rows the statements of this task see: policies of Postgres read it from two settings (decision 0066).

What serves a call has the scope of its caller; work of a service's own sees everything.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from proctor.values.names.project import is_declared

EVERYTHING = "all"
# First in a list: rows of projects that are not declared, which everybody sees, are left out too.
WITHOUT_OPEN = "without_open"
READABLE, WRITABLE = "proctor.readable_projects", "proctor.writable_projects"


@dataclass(frozen=True, slots=True)
class RowScope:
    """Declared projects whose rows are seen, and may be stored: their numbers with commas, or `all`.

    What is in no declared project is seen by everybody but a caller whose key is bound to a project.
    """

    readable: str = EVERYTHING
    writable: str = EVERYTHING

    @property
    def is_of_bound_key(self) -> bool:
        return self.readable.startswith(WITHOUT_OPEN)

    def reads(self, project_id: int) -> bool:
        """Whether rows of a project are seen."""
        if is_declared(project_id):
            return self.readable == EVERYTHING or str(project_id) in self.readable.split(",")
        return not self.is_of_bound_key

    def reading_all(self) -> "RowScope":
        return self if self.readable == EVERYTHING else replace(self, readable=EVERYTHING)


ALL_ROWS = RowScope()
_current: ContextVar[RowScope] = ContextVar("row_scope", default=ALL_ROWS)


def current_scope() -> RowScope:
    return _current.get()


def serve_scope(scope: RowScope) -> None:
    """The scope of the call that this task serves."""
    _current.set(scope)


@contextmanager
def seeing_all() -> Iterator[None]:
    """For what is no caller's to see, such as the queue in which a run waits behind all others."""
    token = _current.set(_current.get().reading_all())
    try:
        yield
    finally:
        _current.reset(token)
