"""The name of a user, and the caller of a request."""

from dataclasses import dataclass

MAX_USER_CHARACTERS = 128
# The user of a call that names none.
LOCAL_USER = "local"
# In the highest priorities of users: all users that these do not name.
OTHER_USERS = "*"


def is_user_name(text: str) -> bool:
    """Whether it is 1 to 128 printable characters without blanks around them, and not `*`."""
    has_form = 0 < len(text) <= MAX_USER_CHARACTERS and text.isprintable() and text == text.strip()
    return has_form and text != OTHER_USERS


@dataclass(frozen=True, slots=True)
class Caller:
    """The user who makes a request, who may be an operator. `is_verified`: an API key proved the name."""

    name: str = LOCAL_USER
    is_operator: bool = False
    is_verified: bool = False

    def may_change(self, owner: str) -> bool:
        """Whether it may change or delete what belongs to `owner`."""
        return self.is_operator or self.name == owner
