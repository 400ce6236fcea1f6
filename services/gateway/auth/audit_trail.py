"""What the gateway alone sees goes to the audit: reads of files, changes at results, sign-ins, refusals.

A call is recorded before it goes on, so that none goes on without a record. Refusals are recorded soon after,
and equal ones of a minute share a record: who guesses keys fills no disk.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from proctor.v1 import audit_pb2
from proctor.v1.access_service_pb2 import AddAuditRecordsRequest
from proctor.values.names.user import Caller
from services.common.clock import Clock
from services.common.errors import DomainError
from services.common.lifecycle import every
from services.common.structured_logs import get_logger
from services.gateway.backends.calls import Scheduler

log = get_logger()

EVERY_SECONDS = 1.0
# Of one user in one minute, or of all unknown callers. Further ones share a record that names no object.
MAX_DIFFERENT = 60
# Sign-ins while the scheduler is away.
_MAX_WAITING = 10_000
_AT_A_TIME = 100
_MINUTE_SECONDS = 60.0
_MAX_CHARACTERS = 512


@dataclass(frozen=True, slots=True)
class Deed:
    """An action on an object. `detail` says which part of it."""

    action: str
    kind: str
    object_id: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Repeated:
    """What equal calls of a minute have in common. Without a user: of unknown callers."""

    deed: Deed
    user: str = ""
    key_id: str = ""
    address: str = ""

    @classmethod
    def of(cls, deed: Deed, caller: Caller) -> "Repeated":
        return cls(deed, caller.name, caller.key_id, caller.address)


@dataclass(slots=True)
class MinuteTally:
    """Counts equal calls: the first one is due at once, all others of the minute at its end.

    Each user has a limit of different ones, so that a flood takes no name away from the calls of others.
    """

    clock: Clock
    max_different: int
    _counts: Counter[Repeated] = field(default_factory=Counter)
    _different: Counter[str] = field(default_factory=Counter)
    _taken: Counter[Repeated] = field(default_factory=Counter)
    _ends_at: float = 0.0

    def __contains__(self, call: Repeated) -> bool:
        return call in self._counts

    def add(self, call: Repeated, *, is_taken: bool = False) -> None:
        """`is_taken`: it has a record already."""
        if call not in self._counts:
            if self._different[call.user] >= self.max_different:
                call = Repeated(Deed(call.deed.action, "others"), call.user)
            else:
                self._different[call.user] += 1
        self._counts[call] += 1
        self._taken[call] += is_taken

    def due(self) -> Iterator[tuple[Repeated, int]]:
        """Calls with their numbers, each call once."""
        is_over = self.clock.monotonic() >= self._ends_at
        for call, count in self._counts.items():
            taken = self._taken[call]
            if count > taken and (is_over or not taken):
                self._taken[call] = count
                yield call, count - taken
        if is_over:
            self._counts.clear()
            self._different.clear()
            self._taken.clear()
            self._ends_at = self.clock.monotonic() + _MINUTE_SECONDS


class AuditTrail:
    """Adds records at the scheduler: at once, or soon."""

    def __init__(self, scheduler: Scheduler, clock: Clock) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._refusals = MinuteTally(clock, MAX_DIFFERENT)
        # Of memory, some MB for a user.
        self._reads = MinuteTally(clock, _MAX_WAITING)
        self._waiting: list[audit_pb2.AuditRecord] = []

    async def admit(self, deed: Deed, caller: Caller, *, is_read: bool) -> None:
        """Records a call before it goes on. Raises `DependencyUnavailable`: then it does not go on.

        Equal reads of a minute share a record.
        """
        read = Repeated.of(deed, caller)
        if is_read and read in self._reads:
            self._reads.add(read)
            return
        await self._send([self._record(read, audit_pb2.AUDIT_OUTCOME_ADMITTED)])
        if is_read:
            self._reads.add(read, is_taken=True)

    async def note_done(self, deed: Deed, caller: Caller) -> None:
        """Records what was done, also where the scheduler is away: soon after it is back."""
        record = self._record(Repeated.of(deed, caller), audit_pb2.AUDIT_OUTCOME_DONE)
        try:
            await self._send([record])
        except DomainError:
            self._wait([record])

    def note_refusal(self, deed: Deed, caller: Caller | None, *, key_id: str = "", address: str = "") -> None:
        """Without a caller: of an unknown key."""
        self._refusals.add(Repeated.of(deed, caller) if caller else Repeated(deed, "", key_id, address))

    async def run(self) -> NoReturn:
        await every(EVERY_SECONDS, self.flush, name="send audit records")

    async def flush(self) -> None:
        """Sends what is due. Where the scheduler is away it waits."""
        for tally, outcome in (
            (self._refusals, audit_pb2.AUDIT_OUTCOME_REFUSED),
            (self._reads, audit_pb2.AUDIT_OUTCOME_ADMITTED),
        ):
            self._wait([self._record(call, outcome, times) for call, times in tally.due()])
        while self._waiting:
            some = self._waiting[:_AT_A_TIME]
            try:
                await self._send(some)
            except DomainError as error:
                log.info("audit records wait", number=len(self._waiting), reason=error.reason)
                return
            del self._waiting[: len(some)]

    def _wait(self, records: Sequence[audit_pb2.AuditRecord]) -> None:
        room = _MAX_WAITING - len(self._waiting)
        if len(records) > room:
            log.error("audit records are lost: the scheduler is away", number=len(records) - room)
        self._waiting += records[:room]

    async def _send(self, records: Sequence[audit_pb2.AuditRecord]) -> None:
        await self._scheduler.access.AddAuditRecords(AddAuditRecordsRequest(records=records))

    def _record(
        self, call: Repeated, outcome: audit_pb2.AuditOutcome.ValueType, times: int = 1
    ) -> audit_pb2.AuditRecord:
        record = audit_pb2.AuditRecord(
            user=call.user,
            key_id=call.key_id,
            address=call.address,
            action=call.deed.action,
            kind=call.deed.kind,
            # Of a path that anybody may have written.
            object_id=_stored(call.deed.object_id),
            detail=_stored(call.deed.detail),
            outcome=outcome,
            times=times,
        )
        record.recorded_at.FromDatetime(self._clock.now())
        return record


def _stored(text: str) -> str:
    """Without what Postgres or a contract cannot hold."""
    return text[:_MAX_CHARACTERS].replace("\x00", "�").encode(errors="replace").decode()
