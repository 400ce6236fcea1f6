"""Counts of one replica of the gateway: requests that the scheduler cannot count, and unknown API keys."""

import ipaddress
from collections import Counter
from dataclasses import dataclass, field
from math import ceil

from proctor.values.run import DEFAULT_READS_PER_MINUTE, DEFAULT_REQUESTS_PER_MINUTE
from services.common.clock import Clock
from services.common.errors import TooManyRequests
from services.gateway.http.errors import TooManyWrongKeys

_MINUTE_SECONDS = 60.0
# Without keys a caller may use any name. Names beyond this number share one count.
_MAX_COUNTS = 20_000
_OTHER_USERS = ""

# A user, and whether the requests are reads.
Key = tuple[str, bool]
# The smallest network of one customer: its owner can use any address of it.
_IPV6_PREFIX = 64


@dataclass(frozen=True, slots=True)
class Counted:
    """The scheduler's answer: the limit (0: none), what is left of it, and how long the minute lasts."""

    limit: int
    remaining: int
    resets_in_seconds: float


@dataclass(slots=True)
class RequestCounts:
    """Requests of this minute: those that the scheduler counted, and those that only this replica counted.

    While it is away the limits that it reported last still hold. Once it is back, both counts are added.
    """

    clock: Clock
    # Until the scheduler has answered once.
    limits: dict[bool, int] = field(
        default_factory=lambda: {False: DEFAULT_REQUESTS_PER_MINUTE, True: DEFAULT_READS_PER_MINUTE}
    )
    _reported: dict[Key, int] = field(default_factory=dict)
    _own: Counter[Key] = field(default_factory=Counter)
    _ends_at: float = 0.0

    def note(self, user: str, counted: Counted, *, is_read: bool) -> None:
        """Notes a request that the scheduler has counted. Raises `TooManyRequests`."""
        self._start_minute()
        self.limits[is_read] = counted.limit
        self._ends_at = self.clock.monotonic() + counted.resets_in_seconds
        key = self._key((user, is_read))
        self._reported[key] = counted.limit - counted.remaining
        self._check(user, key)

    def note_refusal(self, user: str, *, is_read: bool) -> None:
        """The scheduler has refused a request, and so would refuse all others of this minute."""
        self._start_minute()
        self._reported[self._key((user, is_read))] = self.limits[is_read]

    def count(self, user: str, *, is_read: bool) -> None:
        """Counts a request that the scheduler does not count. Raises `TooManyRequests`."""
        self._start_minute()
        key = self._key((user, is_read))
        self._own[key] += 1
        try:
            self._check(user, key)
        except TooManyRequests:
            self._own[key] -= 1
            raise

    def _check(self, user: str, key: Key) -> None:
        limit = self.limits[key[1]]
        if limit and self._reported.get(key, 0) + self._own[key] > limit:
            seconds = max(ceil(self._ends_at - self.clock.monotonic()), 1)
            raise TooManyRequests(user=user, limit=limit, retry_after_seconds=seconds)

    def _key(self, key: Key) -> Key:
        """The given key, or the shared one if there are too many keys."""
        is_known = key in self._reported or key in self._own
        is_full = len(self._reported) + len(self._own) >= _MAX_COUNTS
        return (_OTHER_USERS, key[1]) if is_full and not is_known else key

    def _start_minute(self) -> None:
        """Begins a new minute where one is over."""
        over = self.clock.monotonic() - self._ends_at
        if over >= 0:
            self._reported.clear()
            self._own.clear()
            self._ends_at += _MINUTE_SECONDS * (over // _MINUTE_SECONDS + 1)


class WrongKeys:
    """Counts unknown API keys in each replica, so that they cost the scheduler nothing.

    A known key is neither counted nor refused, since behind a proxy all callers have one address. So the
    limit bounds what guessing costs; the length of keys keeps them from being guessed.
    """

    def __init__(self, clock: Clock) -> None:
        # As many as a user may make changes.
        self._counts = RequestCounts(clock)

    def count(self, address: str) -> None:
        """Raises `TooManyWrongKeys` above the limit."""
        try:
            self._counts.count(_network(address), is_read=False)
        except TooManyRequests as error:
            limit, seconds = error.facts["limit"], error.facts["retry_after_seconds"]
            raise TooManyWrongKeys(address=address, limit=limit, retry_after_seconds=seconds) from error


def _network(address: str) -> str:
    """The address; for IPv6 its network, because one client has all addresses of it."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))
