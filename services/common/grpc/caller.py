"""The caller of the gateway as metadata of the gateway's own calls.

A service takes it where its signature is right (`signatures`), and the gateway takes it from no client.
"""

from collections.abc import Iterable, Mapping

from proctor.values.names.user import Caller, Role

# Keys of metadata that only the gateway sets begin with this.
PREFIX = "x-proctor-"
# The suffix lets a value hold bytes, and so characters that are not ASCII.
_NAME = f"{PREFIX}caller-bin"
_ROLE = f"{PREFIX}role"

_ROLES: Mapping[object, Role] = {role.value: role for role in Role}

Metadata = tuple[tuple[str, str | bytes], ...]


def caller_metadata(caller: Caller) -> Metadata:
    return ((_NAME, caller.name.encode()), (_ROLE, caller.role.value))


def caller_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> Caller:
    """Metadata without a caller is that of the user `local`, who is a runner."""
    found = dict(metadata or ())
    name = found.get(_NAME)
    if not isinstance(name, bytes):
        return Caller()
    return Caller(name.decode(), role=_ROLES.get(found.get(_ROLE), Role.VIEWER))


def signed_caller(found: Mapping[str, str | bytes]) -> bytes:
    """The caller in metadata, as a signature covers it: the role, which has no line break, then the name."""
    values = (found.get(key, b"") for key in (_ROLE, _NAME))
    return b"\n".join(value if isinstance(value, bytes) else value.encode() for value in values)
