"""The caller of the gateway as metadata of the gateway's own calls.

A service takes it where its signature is right (`signatures`), and the gateway takes it from no client.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache

from proctor.values.names.user import Caller, Role
from services.common.sql.row_scope import ALL_ROWS, WITHOUT_OPEN, RowScope, serve_scope

# Keys of metadata that only the gateway sets begin with this.
PREFIX = "x-proctor-"
# The suffix lets a value hold bytes, and so characters that are not ASCII.
_NAME = f"{PREFIX}caller-bin"
_ROLE = f"{PREFIX}role"
_KEY_ID = f"{PREFIX}key-id"
_ADDRESS = f"{PREFIX}address-bin"
# As "9000000000000001:2", with commas between them.
_PROJECTS = f"{PREFIX}projects"
# The one that the key is bound to.
_KEY_PROJECT = f"{PREFIX}key-project"

_ROLES: Mapping[object, Role] = {role.value: role for role in Role}

Metadata = tuple[tuple[str, str | bytes], ...]
_NOBODY = Caller()
_current: ContextVar[Caller] = ContextVar("current_caller", default=_NOBODY)


def caller_metadata(caller: Caller) -> Metadata:
    named = ((_NAME, caller.name.encode()), (_ROLE, caller.role.value))
    projects = ",".join(f"{project_id}:{role.number}" for project_id, role in caller.projects)
    bound = str(caller.key_project or "")
    known = (
        (_KEY_ID, caller.key_id),
        (_ADDRESS, caller.address.encode()),
        (_PROJECTS, projects),
        (_KEY_PROJECT, bound),
    )
    return (*named, *((key, value) for key, value in known if value))


def caller_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> Caller:
    """Metadata without a caller is that of the user `local`, who is a runner."""
    found = dict(metadata or ())
    name, address = found.get(_NAME), found.get(_ADDRESS, b"")
    if not isinstance(name, bytes):
        return Caller()
    return Caller(
        name.decode(),
        role=_ROLES.get(found.get(_ROLE), Role.VIEWER),
        key_id=str(found.get(_KEY_ID, "")),
        address=address.decode() if isinstance(address, bytes) else "",
        projects=_projects(str(found.get(_PROJECTS, ""))),
        key_project=int(str(found.get(_KEY_PROJECT, "0"))),
    )


@lru_cache(maxsize=1024)
def _projects(text: str) -> tuple[tuple[int, Role], ...]:
    pairs = (each.split(":") for each in text.split(",") if text)
    return tuple((int(project_id), Role.of_number(int(role))) for project_id, role in pairs)


def signed_caller(found: Mapping[str, str | bytes]) -> bytes:
    """The caller in metadata, as a signature covers it. Only the name may have line breaks: it is last."""
    values = (found.get(key, b"") for key in (_ROLE, _KEY_ID, _PROJECTS, _KEY_PROJECT, _ADDRESS, _NAME))
    return b"\n".join(value if isinstance(value, bytes) else value.encode() for value in values)


def serve_caller(found: Mapping[str, str | bytes]) -> Caller:
    """Names the caller in the metadata of the call that this task serves; its statements see his rows.

    The scheduler calls without one for its own work, which sees everything.
    """
    caller = caller_of(found.items())
    _current.set(caller)
    serve_scope(_scope_of(caller) if _NAME in found else ALL_ROWS)
    return caller


def _scope_of(caller: Caller) -> RowScope:
    if caller.sees_all:
        return ALL_ROWS
    readable = [str(project_id) for project_id, _ in caller.projects]
    writable = [str(each) for each, _ in caller.projects if caller.role_in(each) != Role.VIEWER]
    bound = (WITHOUT_OPEN,) if caller.key_project else ()
    return RowScope(",".join((*bound, *readable)), ",".join((*bound, *writable)))


def current_caller() -> Caller:
    """The caller of the call that is served; the anonymous one in the service's own loops."""
    return _current.get()
