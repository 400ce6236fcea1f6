"""The name of a user, the roles of users, and the caller of a request."""

from dataclasses import dataclass

from proctor.values.contract_enum import ContractEnum

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
    browser's session, `address` the one that the gateway was called from.
    """

    name: str = LOCAL_USER
    role: Role = Role.RUNNER
    is_verified: bool = False
    key_id: str = ""
    session_id: str = ""
    address: str = ""

    @property
    def is_operator(self) -> bool:
        return self.role is Role.OPERATOR

    @property
    def is_viewer(self) -> bool:
        return self.role is Role.VIEWER

    def may_change(self, owner: str) -> bool:
        """Whether it may change or delete what belongs to `owner`."""
        return self.role >= Role.MAINTAINER or (self.name == owner and self.role >= Role.RUNNER)
