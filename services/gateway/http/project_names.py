"""Names of declared projects, taken and shown in the place of their numbers in REST and on pages.

Callers know the names of the projects that they see, and no others.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import Ge, Le
from pydantic import BeforeValidator, Field

from proctor.values.names.project import MAX_PROJECT_CHARACTERS
from proctor.values.names.user import Caller
from services.common.errors import ProjectNotFound

# The largest integer that every reader of JSON has exactly (RFC 8259, section 6).
_MOST = 2**53 - 1
# More would weigh more than the rest of a page.
_MAX_OFFERED = 200


@dataclass(slots=True)
class ProjectNames:
    """The names of all declared projects, as this replica has heard of them."""

    _names: dict[int, str] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)

    def learn(self, project_id: int, name: str) -> None:
        earlier = self._names.get(project_id, "")
        # Another project may have taken the earlier name meanwhile.
        if self._numbers.get(earlier) == project_id:
            del self._numbers[earlier]
        self._names[project_id] = name
        self._numbers[name] = project_id

    def clear(self) -> None:
        self._names.clear()
        self._numbers.clear()

    def name_of(self, project_id: int, caller: Caller) -> str:
        """ "" for one that is not declared, or that the caller does not see."""
        return self._names.get(project_id, "") if caller.role_in(project_id) else ""

    def seen_by(self, caller: Caller) -> list[str]:
        """Names in their order."""
        return sorted(name for name, number in self._numbers.items() if caller.role_in(number))

    def number_of(self, name: str, caller: Caller) -> int:
        """Raises `ProjectNotFound`."""
        project_id = self._numbers.get(name)
        if project_id is None or not caller.role_in(project_id):
            raise ProjectNotFound
        return project_id


_present: ContextVar[tuple[ProjectNames, Caller]] = ContextVar(
    "project_names", default=(ProjectNames(), Caller())
)


@contextmanager
def naming_projects(names: ProjectNames, caller: Caller) -> Iterator[None]:
    """Projects inside are named as this caller sees them."""
    token = _present.set((names, caller))
    try:
        yield
    finally:
        _present.reset(token)


def project_name(project_id: int) -> str:
    """The name of a project that the present caller sees; "" for one without a name."""
    names, caller = _present.get()
    return names.name_of(project_id, caller)


def project(project_id: int) -> str:
    """A project as pages show it: its name, else its number."""
    return project_name(project_id) or str(project_id)


def seen_projects() -> list[str]:
    """Names of projects that the present caller sees, the first of them: fields offer them."""
    names, caller = _present.get()
    return names.seen_by(caller)[:_MAX_OFFERED]


def key_project() -> int:
    """The project of what a form stores without naming one: that of the caller's key, else none."""
    _, caller = _present.get()
    return caller.key_project


def number_of_project(name: str) -> int:
    """Raises `ProjectNotFound`."""
    names, caller = _present.get()
    return names.number_of(name, caller)


def is_number(text: str) -> bool:
    """A text that is no name: names are not digits alone."""
    return text.removeprefix("-").isdecimal()


def number_of(text: str) -> int:
    """Of a project that is written as its number or its name. Raises `ProjectNotFound`."""
    return min(int(text), _MOST) if is_number(text) else number_of_project(text)


def known_project(text: str) -> str:
    """The text where it is a number, or the name of a project that the present caller sees; else ""."""
    names, caller = _present.get()
    return text if text.isdecimal() or text in names.seen_by(caller) else ""


def project_number(given: object) -> object:
    """The number of a project that is given by its number or name. Raises `ProjectNotFound`."""
    if isinstance(given, bool):
        raise ValueError("it must be a number or a name")  # noqa: TRY004  # as pydantic takes it
    if not isinstance(given, str) or is_number(given):
        return given
    return number_of_project(given)


_NUMBER = Annotated[int, Field(ge=0, le=_MOST)]
_NAME = Annotated[str, Field(min_length=1, max_length=MAX_PROJECT_CHARACTERS)]
# In the metadata of a field it says that a text is taken, too.
BY_NAME = BeforeValidator(project_number, json_schema_input_type=_NUMBER | _NAME)
# A project in bodies and queries: its number, or the name of a declared one.
ProjectNumber = Annotated[int, BY_NAME, Ge(0), Le(_MOST)]
# The bounds are those of the number: pydantic would hold null against bounds of the whole.
OptionalProject = Annotated[
    _NUMBER | None, BeforeValidator(project_number, json_schema_input_type=_NUMBER | _NAME | None)
]
# Beside a number in answers.
ProjectName = Annotated[str | None, Field(description="Of a declared project; null for another one")]
