"""Who calls, what they may call, and their limits: one place for HTTP and gRPC.

With API keys configured, each call outside of the public ones presents one, and the user is the holder of the
key. Without keys the user is the name in X-Proctor-User, else `local`, and is an operator: this is the single
person of a local stack. gRPC calls carry the same names in their metadata.
"""

import secrets
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from pydantic import SecretStr
from starlette.requests import Request

from proctor.v1.request_count_service_pb2 import CountRequestRequest
from proctor.values.run import LOCAL_USER, Principal, is_user_name
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.structured_logs import get_logger
from services.gateway.backends import Scheduler
from services.gateway.errors.gateway_errors import (
    GatewayFull,
    GatewayHoldsTooMuch,
    InvalidUserName,
    KeyMissing,
    KeyUnknown,
    NotForUsers,
    OperatorsOnly,
    TooManyCalls,
)
from services.gateway.permissions import Permission
from services.gateway.request_counts import Counted, RequestCounts

USER_HEADER = "X-Proctor-User"
# Metadata with this suffix holds bytes, and so can hold letters that are not ASCII.
_BINARY_SUFFIX = "-bin"
log = get_logger()
# Every request waits for this call; a slow scheduler must not make the gateway slow.
_TIMEOUT_SECONDS = 1.0
# Between two tries requests do not wait for a scheduler that hangs.
_ASK_AGAIN_SECONDS = 1.0
# What an upload holds in memory: a chunk that was read, and one that is being sent.
STREAMED_BYTES = 2 * 1024 * 1024


class Identity:
    """Finds the principal of a call by its API key and headers."""

    def __init__(self, api_keys: Mapping[str, SecretStr], operators: Collection[str] = ()) -> None:
        """`api_keys` maps the name of a user to its key; `operators` are some of these users."""
        self._api_keys = api_keys
        self._operators = frozenset(operators)

    def principal_of(self, headers: Mapping[str, str]) -> Principal:
        """`headers` are case-insensitive. Raises `KeyMissing`, `KeyUnknown` or `InvalidUserName`."""
        if not self._api_keys:
            return Principal(_given_name(headers) or LOCAL_USER, is_operator=True)
        presented = _presented_key(headers)
        if not presented:
            raise KeyMissing
        name = self._key_holder(presented)
        if name is None:
            raise KeyUnknown
        return Principal(name, is_operator=name in self._operators, is_verified=True)

    def principal_of_metadata(self, metadata: Iterable[tuple[str, str | bytes]]) -> Principal:
        """The same for the metadata of a gRPC call."""
        return self.principal_of(
            {
                key.removesuffix(_BINARY_SUFFIX): value if isinstance(value, str) else value.decode("latin-1")
                for key, value in metadata
            }
        )

    def _key_holder(self, presented: str) -> str | None:
        for name, key in self._api_keys.items():
            # In constant time: how long it takes says nothing about how much of a key was right.
            if secrets.compare_digest(presented.encode(), key.get_secret_value().encode()):
                return name
        return None


def _presented_key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _given_name(headers: Mapping[str, str]) -> str:
    given = headers.get(USER_HEADER.lower())
    if given is None:
        return ""
    try:
        # HTTP passes each byte of UTF-8 as one character.
        name = given.encode("latin-1").decode().strip()
    except UnicodeError as error:
        raise InvalidUserName from error
    if not is_user_name(name):
        raise InvalidUserName
    return name


async def _caller(request: Request) -> Principal:
    # Found once, when the request was admitted.
    caller: Principal = request.state.caller
    return caller


async def _user(caller: Annotated[Principal, Depends(_caller)]) -> str:
    return caller.name


async def _now(request: Request) -> datetime:
    clock: Clock = request.app.state.clock
    return clock.now()


# Dependencies of handlers: the caller and the time.
Caller = Annotated[Principal, Depends(_caller)]
User = Annotated[str, Depends(_user)]
Now = Annotated[datetime, Depends(_now)]


class RequestLimit:
    """Counts requests of users: the scheduler does for all replicas, and each for itself while it is away."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._counts = RequestCounts(clock)
        self._ask_from = clock.monotonic()

    async def count(self, user: str, *, is_read: bool) -> None:
        """Raises `TOO_MANY_REQUESTS` above the limit."""
        if self._clock.monotonic() < self._ask_from:
            self._counts.count(user, is_read=is_read)
            return
        try:
            response = await self._scheduler.request_counts.CountRequest(
                CountRequestRequest(user=user, is_read=is_read), timeout=_TIMEOUT_SECONDS
            )
        except DomainError as error:
            # The limit itself; any other error means that the scheduler could not count.
            if error.kind is ErrorKind.EXHAUSTED:
                self._counts.note_refusal(user, is_read=is_read)
                raise
            log.info("request counted by the gateway alone", user=user, reason=error.reason)
            self._ask_from = self._clock.monotonic() + _ASK_AGAIN_SECONDS
            self._counts.count(user, is_read=is_read)
            return
        # A scheduler of an older release names no limit.
        if response.HasField("limit"):
            seconds = response.resets_in.ToTimedelta().total_seconds()
            self._counts.note(user, Counted(response.limit, response.remaining, seconds), is_read=is_read)


class CallSlots:
    """Requests in progress: so few that they fit into memory, and not all of them of one user."""

    def __init__(
        self, *, max_calls: int, max_calls_per_user: int, max_bytes: int, max_bytes_per_user: int
    ) -> None:
        self._max_calls = max_calls
        self._max_calls_per_user = max_calls_per_user
        self._max_bytes = max_bytes
        self._max_bytes_per_user = max_bytes_per_user
        self._calls: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._all_calls = self._all_bytes = 0

    @contextmanager
    def slot(self, user: str, size: int) -> Iterator[None]:
        """Takes a slot for one request with a body of `size` bytes.

        Raises `TooManyCalls`, `GatewayFull` or `GatewayHoldsTooMuch`.
        """
        if self._all_calls >= self._max_calls:
            raise GatewayFull(limit=self._max_calls)
        if self._calls[user] >= self._max_calls_per_user:
            raise TooManyCalls(user=user, limit=f"{self._max_calls_per_user} requests", retry_after_seconds=1)
        with self._changed(user, 1, 0), self.counted_bytes(user, size):
            yield

    @contextmanager
    def counted_bytes(self, user: str, size: int) -> Iterator[None]:
        """Counts the bytes of a request with a slot. Raises `TooManyCalls` or `GatewayHoldsTooMuch`.

        A single request always fits: bodies have a limit of their own.
        """
        # An empty account takes any body: `BodyLimit` bounds a single one.
        if self._bytes[user] and self._bytes[user] + size > self._max_bytes_per_user:
            raise TooManyCalls(user=user, limit=f"{self._max_bytes_per_user} bytes", retry_after_seconds=1)
        if size and self._all_bytes and self._all_bytes + size > self._max_bytes:
            raise GatewayHoldsTooMuch(limit=self._max_bytes)
        with self._changed(user, 0, size):
            yield

    @contextmanager
    def _changed(self, user: str, calls: int, size: int) -> Iterator[None]:
        self._change(user, calls, size)
        try:
            yield
        finally:
            self._change(user, -calls, -size)

    def _change(self, user: str, calls: int, size: int) -> None:
        self._all_calls += calls
        self._all_bytes += size
        for counts, change in ((self._calls, calls), (self._bytes, size)):
            counts[user] += change
            if not counts[user]:
                del counts[user]


@dataclass(frozen=True, slots=True)
class Admission:
    """Decides of each call whether it is served: by its caller, its permission and the limits."""

    identity: Identity
    limit: RequestLimit
    slots: CallSlots

    @asynccontextmanager
    async def admitted(self, caller: Principal, permission: Permission, size: int) -> AsyncIterator[None]:
        """Admits one call that holds `size` bytes; malformed ones are counted too.

        Raises `OperatorsOnly`, `NotForUsers`, or an error of a limit.
        """
        # Before the permission, so that guessing what is allowed is limited too.
        await self._count(caller, permission)
        if permission is Permission.INTERNAL:
            raise NotForUsers
        if permission is Permission.OPERATOR and not caller.is_operator:
            raise OperatorsOnly(user=caller.name)
        with self.slots.slot(caller.name, size):
            yield

    async def _count(self, caller: Principal, permission: Permission) -> None:
        try:
            await self.limit.count(caller.name, is_read=permission is Permission.READ)
        except DomainError:
            # An operator above the request limit must be able to raise it.
            if not (permission is Permission.OPERATOR and caller.is_operator):
                raise
