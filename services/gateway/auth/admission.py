"""Permissions and request limits of callers, the same for HTTP and gRPC."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from proctor.v1.request_count_service_pb2 import CountRequestRequest
from proctor.values.names.user import Caller
from services.common.clock import Clock
from services.common.errors import DomainError, ErrorKind
from services.common.grpc.permissions import Permission, check_role
from services.common.structured_logs import get_logger
from services.gateway.auth.audit_trail import AuditTrail, Deed
from services.gateway.auth.follow_keys import FollowKeys
from services.gateway.auth.identity import Identity, is_stored_key, presented_key_id, presented_token
from services.gateway.auth.oidc.sign_in import OidcSignIn
from services.gateway.auth.request_counts import Counted, RequestCounts, WrongKeys
from services.gateway.auth.trusted_proxies import TrustedProxies
from services.gateway.backends.calls import Scheduler
from services.gateway.http.errors import (
    GatewayFull,
    GatewayHoldsTooMuch,
    KeyUnknown,
    NotForUsers,
    TokenUnknown,
    TooManyCalls,
    TooManyWrongKeys,
)

log = get_logger()
# Every request waits for this call; a slow scheduler must not make the gateway slow.
_TIMEOUT_SECONDS = 1.0
# Time after a failed call in which no request waits for the scheduler.
_ASK_AGAIN_SECONDS = 1.0
SIGN_IN = Deed("sign in", "session")
# Memory of an upload: a chunk that was read, and one that is being sent.
STREAMED_BYTES = 2 * 1024 * 1024


class RequestLimit:
    """Counts requests of users: in the scheduler for all replicas, and in each replica while it is away."""

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
        seconds = response.resets_in.ToTimedelta().total_seconds()
        self._counts.note(user, Counted(response.limit, response.remaining, seconds), is_read=is_read)


class CallSlots:
    """Calls, which are requests in progress: so few that they fit into memory, and not all of one user."""

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
        """Takes a slot for one call with a body of `size` bytes.

        Raises `TooManyCalls`, `GatewayFull` or `GatewayHoldsTooMuch`.
        """
        if self._all_calls >= self._max_calls:
            raise GatewayFull(limit=self._max_calls)
        if self._calls[user] >= self._max_calls_per_user:
            raise TooManyCalls(user=user, limit=f"{self._max_calls_per_user} calls", retry_after_seconds=1)
        with self._changed(user, 1, 0), self.counted_bytes(user, size):
            yield

    @contextmanager
    def counted_bytes(self, user: str, size: int) -> Iterator[None]:
        """Counts the bytes of a call with a slot. Raises `TooManyCalls` or `GatewayHoldsTooMuch`.

        A single call always fits: bodies have a limit of their own.
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
    keys: FollowKeys
    limit: RequestLimit
    slots: CallSlots
    wrong_keys: WrongKeys
    trail: AuditTrail
    proxies: TrustedProxies = field(default_factory=TrustedProxies)
    # None: users have keys alone.
    provider: OidcSignIn | None = None

    async def caller_of(self, headers: Mapping[str, str], address: str, session: str = "") -> Caller:
        """The caller with the caller's projects.

        Raises what `Identity.caller_of` does, and `TooManyWrongKeys` for the next unknown key.
        """
        try:
            caller = await self._found(headers, address, session)
        except (KeyUnknown, TokenUnknown, TooManyWrongKeys):
            self.trail.note_refusal(SIGN_IN, None, key_id=presented_key_id(headers), address=address)
            raise
        return replace(caller, address=address, projects=self.keys.ring.projects_of(caller))

    async def _found(self, headers: Mapping[str, str], address: str, session: str) -> Caller:
        if self.provider and (token := presented_token(headers)):
            return await self._holder_of_token(self.provider, token, address)
        try:
            return self.identity.caller_of(headers, session)
        except KeyUnknown:
            self.wrong_keys.count(address)
            if not is_stored_key(headers):
                raise
        # It may be newer than what this replica has heard of.
        await self.keys.refresh()
        return self.identity.caller_of(headers)

    async def _holder_of_token(self, provider: OidcSignIn, token: str, address: str) -> Caller:
        try:
            return await provider.caller_of(token)
        except TokenUnknown:
            self.wrong_keys.count(address)
            raise

    @asynccontextmanager
    async def admitted(self, caller: Caller, permission: Permission, size: int) -> AsyncIterator[None]:
        """Admits one call that holds `size` bytes; malformed ones are counted too.

        Raises `NotForUsers`, what `check_role` does, or an error of a limit.
        """
        # Before the permission, so that guessing what is allowed is limited too.
        await self._count(caller, permission)
        if permission is Permission.INTERNAL:
            raise NotForUsers
        check_role(permission, caller)
        with self.slots.slot(caller.name, size):
            yield

    @contextmanager
    def admitted_peer(self, address: str, size: int) -> Iterator[None]:
        """Admits one change without a key, under the address that it comes from. Raises errors of a limit.

        It is not counted: such changes are of cookies, and an unknown key counts by itself.
        """
        # Behind a proxy all have its address.
        with self.slots.slot(f"at {address}", size):
            yield

    async def _count(self, caller: Caller, permission: Permission) -> None:
        try:
            await self.limit.count(caller.name, is_read=permission is Permission.READ)
        except DomainError:
            # An operator above the request limit must be able to raise it.
            if not (permission is Permission.OPERATOR and caller.is_operator):
                raise
