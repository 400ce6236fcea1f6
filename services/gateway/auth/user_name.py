"""What a user may be called, at both doors; the scheduler asks the same of names in bodies."""

from services.gateway.errors.gateway_errors import InvalidUserName

_MAX_LETTERS = 128
# In the list of priorities it stands for all who are not named.
_EVERYBODY = "*"


def user_name(text: str) -> str:
    name = text.strip()
    if not (0 < len(name) <= _MAX_LETTERS and name.isprintable()) or name == _EVERYBODY:
        raise InvalidUserName
    return name
