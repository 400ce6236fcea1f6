"""Fields of many requests: users, owners, request ids and page sizes."""

import unicodedata
from uuid import UUID, uuid5

from proctor.values.generation import Problem
from proctor.values.names.user import MAX_USER_CHARACTERS, OTHER_USERS, Caller, is_user_name
from services.common.checked_fields import checked_number
from services.common.errors import BelongsToAnother, InvalidParameter, ProjectNotFound
from services.common.sql.row_scope import current_scope

DEFAULT_PAGE_SIZE = 20
MAX_PAGE_SIZE = 500
# Embeddings, overrides and isolates of Unicode's bidirectional algorithm, and their ends.
_DIRECTION_MARKS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def check_owner(caller: Caller, owner: str, thing: str, project_id: int) -> None:
    """Raises `BelongsToAnother` unless the caller may change the thing, such as "Run 7".

    Who only reads in its project gets `ProjectNotFound`: the thing may be the caller's own.
    """
    check_stores(caller, project_id)
    if not caller.may_change(owner, project_id):
        raise BelongsToAnother(thing=thing, owner=owner)


def check_stores(caller: Caller, project_id: int) -> None:
    """Raises `ProjectNotFound` unless the caller may store something in the project."""
    if not caller.may_store(project_id):
        raise ProjectNotFound


def check_sees(caller: Caller, project_id: int) -> None:
    """Raises `ProjectNotFound` unless the caller may see what is in the project."""
    if caller.role_in(project_id) is None:
        raise ProjectNotFound


def checked_request_id(text: str) -> str:
    """Keys that are bound to a project have request ids of their own: nothing shows what others have made."""
    if not text:
        return ""
    try:
        given, scope = UUID(text), current_scope()
        return str(uuid5(given, scope.readable) if scope.is_of_bound_key else given)
    except ValueError as error:
        sentence = f'request_id is "{text}", but must be a UUID. Leave it out where calls are not repeated.'
        raise InvalidParameter(field="request_id", sentence=sentence) from error


def checked_page_size(wanted: int, default: int = DEFAULT_PAGE_SIZE, maximum: int = MAX_PAGE_SIZE) -> int:
    return checked_number("page_size", wanted, maximum=maximum, default=default)


def hidden_problem(field: str, text: str) -> Problem | None:
    """Control characters, and those that turn the direction of writing, make a name look like another one."""
    is_hidden = any(
        unicodedata.category(one) == "Cc" or unicodedata.bidirectional(one) in _DIRECTION_MARKS
        for one in text
    )
    if not is_hidden:
        return None
    sentence = f"{field} holds a control character, or one that turns the direction of writing. Leave it out."
    return Problem(field, sentence)


def user_problem(user: str) -> Problem | None:
    if is_user_name(user):
        return None
    shape = f"1 to {MAX_USER_CHARACTERS} printable characters without blanks around them"
    return Problem(
        "user", f"user is {user[:MAX_USER_CHARACTERS]!a}, but must be {shape}, and not {OTHER_USERS}."
    )


def project_problem(project_id: int) -> Problem | None:
    if project_id >= 0:
        return None
    return Problem("project_id", f"project_id is {project_id}, but must be at least 0.")
