"""The name of a user, the roles of users, and the caller of a request."""

from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum
from proctor.values.names.project import is_declared

MAX_USER_CHARACTERS = 128
# The user of a call that names none.
LOCAL_USER = "local"
# In the highest priorities of users: all users that these do not name.
OTHER_USERS = "*"


def is_user_name(text: str) -> bool:
    """Whether it is 1 to 128 printable characters without blanks around them, and not `*`."""
    has_form = 0 < len(text) <= MAX_USER_CHARACTERS and text.isprintable() and text == text.strip()
    return has_form and text != OTHER_USERS


class Role(ContractEnum):
    """What a user may do; each role may do what those below it may."""

    VIEWER = "viewer", 1
    RUNNER = "runner", 2
    MAINTAINER = "maintainer", 3
    OPERATOR = "operator", 4


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who makes a request. `is_verified`: an API key proved the name.

    `key_id` is that of a stored key; one in the settings of the gateway has none. `session_id` is that of a
    browser's session, `address` the one that the gateway was called from. `projects` are the declared ones
    that the user is a member of, with the user's role in each. A key that is bound to `key_project` reaches
    nothing outside of it. `ends` is when its token or session does, in seconds since 1970; 0 is never.
    """

    name: str = LOCAL_USER
    role: Role = Role.RUNNER
    is_verified: bool = False
    key_id: str = ""
    session_id: str = ""
    address: str = ""
    projects: tuple[tuple[int, Role], ...] = ()
    key_project: int = 0
    ends: float = 0.0

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR

    @property
    def is_viewer(self) -> bool:
        return self.role is Role.VIEWER

    @property
    def sees_all(self) -> bool:
        return self.is_operator and not self.key_project

    @property
    def sight(self) -> tuple[int, ...] | None:
        """The project of the key, then the declared ones that it sees; None for all of them.

        Callers of one sight see the same.
        """
        return None if self.sees_all else (self.key_project, *(project_id for project_id, _ in self.projects))

    def role_in(self, project_id: int) -> Role | None:
        """What the caller may do in a project; None where it is not to be seen.

        In a declared project the role of the member counts. A viewer's key only reads, everywhere.
        """
        if self.key_project not in (0, project_id):
            return None
        if self.is_operator or not is_declared(project_id):
            return self.role
        role = dict(self.projects).get(project_id)
        return self.role if role and self.is_viewer else role

    def may_store(self, project_id: int = 0) -> bool:
        """Whether it may order and upload in a project."""
        role = self.role_in(project_id)
        return role is not None and role >= Role.RUNNER

    def may_change(self, owner: str, project_id: int = 0) -> bool:
        """Whether it may change or delete what belongs to `owner`."""
        role = self.role_in(project_id)
        if role is None:
            return False
        return role >= Role.MAINTAINER or (self.name == owner and role >= Role.RUNNER)
