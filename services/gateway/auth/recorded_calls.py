"""Which calls the gateway records, and how the audit names them: by their method and their objects."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import parse_qsl

from google.protobuf.message import Message

from proctor.values.names.user import Caller
from services.common.errors import DomainError
from services.common.grpc.permissions import RECORDED, Permission, method_permission
from services.gateway.auth.audit_trail import AuditTrail, Deed
from services.gateway.auth.permissions import ROUTES
from services.gateway.http.api_errors import run_id_of

_WORD = re.compile(r"[A-Z][a-z]*")
# Files of answers and figures that pages and lists give.
_FILES = ("/export", ".jsonl")
_FILE_FORMS = frozenset({"jsonl", "csv"})
# Fields of requests that name their object, and those that name a part of it.
_IDS = ("run_id", "file_id", "dataset_id", "batch_id", "key_id", "suite")
_PARTS = ("sample", "rollout", "execution", "name", "task", "version")


@lru_cache(maxsize=256)
def _words(method: str) -> tuple[str, str]:
    """ "ExportGoldenAnswers": export, golden answers."""
    verb, *object_words = (word.lower() for word in _WORD.findall(method))
    return verb, " ".join(object_words)


def method_of(http_method: str, path: str) -> str:
    """The gRPC method behind a route; "" for a route without one."""
    operation = ROUTES.get(("GET" if http_method == "HEAD" else http_method, path), "")
    return "" if isinstance(operation, Permission) else operation


def is_recorded(method: str, path: str = "", query: str = "") -> bool:
    """Whether the gateway records such a call before it goes on."""
    return method in RECORDED or _is_file(method, path, query)


def is_guarded(method: str) -> bool:
    """Whether its refusals are recorded."""
    return method_permission(method) not in (Permission.READ, Permission.INTERNAL)


def deed_of_route(method: str, path: str, parameters: Mapping[str, object], query: str) -> Deed:
    """`parameters` are those of the path, in their order."""
    action, kind = _words(method)
    ids, *parts = [str(value) for value in parameters.values()] or [_ids_in(query)]
    return Deed("export" if _is_file(method, path, query) else action, kind, _run_id(ids), "/".join(parts))


def deed_of_message(method: str, request: Message | None) -> Deed:
    """None where nothing was read of the request."""
    action, kind = _words(method)
    if request is None:
        return Deed(action, kind)
    names = request.DESCRIPTOR.fields_by_name
    ids = [getattr(request, name) for name in _IDS if name in names]
    if "run_ids" in names:
        ids.append(",".join(getattr(request, "run_ids")))  # noqa: B009  # not a field of every message
    parts = [str(getattr(request, name)) for name in _PARTS if name in names and getattr(request, name) != ""]
    return Deed(action, kind, next(iter(ids), ""), "/".join(parts))


async def admit_call(trail: AuditTrail, deed: Deed, method: str, caller: Caller) -> None:
    """Raises `DependencyUnavailable`."""
    await trail.admit(deed, caller, is_read=method_permission(method) is Permission.READ)


def _is_file(method: str, path: str, query: str) -> bool:
    if any(part in path for part in _FILES):
        return True
    return method == "ListOutcomes" and bool(_FILE_FORMS & {value for _, value in _pairs(query, "format")})


def _ids_in(query: str) -> str:
    """Of runs that were chosen; programs and pages name them differently."""
    pairs = [*_pairs(query, "ids"), *_pairs(query, "run")]
    return ",".join(_run_id(each) for _, value in pairs for each in value.split(","))


def _pairs(query: str, name: str) -> Iterable[tuple[str, str]]:
    # Most queries have none: they are not parsed.
    return [pair for pair in parse_qsl(query) if pair[0] == name] if f"{name}=" in query else []


def _run_id(text: str) -> str:
    try:
        return run_id_of(text)
    except DomainError:
        return text
